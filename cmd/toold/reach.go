package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/internal/reach"
	"github.com/toold/toold/internal/workspaces"
)

func (g *global) daemon(cfg config.Config) reach.Daemon {
	return reach.Daemon{Config: cfg, Named: g.options.Listen != "", As: g.as, Version: version}
}

func (g *global) dial(ctx context.Context, role string) (*client.Client, error) {
	cfg, err := g.remote()
	if err != nil {
		return nil, err
	}
	c, err := g.daemon(cfg).Dial(ctx, role, client.Options{Name: "toold", Silent: true})
	if errors.Is(err, client.ErrUnreachable) {
		err = fmt.Errorf("%w; start one with `toold serve`, or name another with --listen", err)
	}
	if err != nil {
		return nil, console.Exit(console.ExitUnreachable, err)
	}
	return c, nil
}

func (g *global) reach(ctx context.Context, cfg config.Config, o client.Options) (*peer, error) {
	o.Name = cmp.Or(o.Name, "toold call")
	d := g.daemon(cfg)
	agent, err := d.Agent(ctx, o)
	if err != nil {
		return nil, err
	}
	return &peer{agent: agent, connect: d.Dial}, nil
}

// discover finds the workspace of dir, and its part below.
func (g *global) discover(stateDir, dir string) (string, error) {
	list, err := workspaces.In(stateDir).List()
	if err != nil {
		return "", err
	}
	home, err := paths.Resolve(os.Getenv("HOME"))
	if err != nil {
		home = ""
	}
	root := workspaces.Discover(workspaces.Paths(list), dir, home)
	g.below = ""
	if below, err := filepath.Rel(root, dir); err == nil && below != "." {
		g.below = below
	}
	return root, nil
}

// from makes a path relative to the workspace. It does not clean it: link/.. is for the tools.
func (g *global) from(path string) string {
	switch {
	case g.below == "" || filepath.IsAbs(path) || len(path) > 0 && path[0] == '~':
		return path
	case path == "":
		return g.below
	}
	return g.below + "/" + path
}

func (g *global) register(ctx context.Context, cfg config.Config) error {
	added, err := workspaces.In(cfg.StateDir).Add(ctx, cfg.Workspace)
	if err != nil {
		return console.Exit(console.ExitConfig, err)
	}
	if added && !g.JSON {
		fmt.Fprintf(g.Err, "toold: registered the workspace %s\n", cfg.Workspace)
	}
	return nil
}

// elsewhere returns the configuration of other workspaces, from the file as read at the start.
func (g *global) elsewhere(cfg config.Config) func(root string) (config.Config, error) {
	return func(root string) (config.Config, error) {
		options := g.options
		options.Path, options.Text, options.Workspace = cfg.File, cfg.Text, root
		return config.Load(options)
	}
}
