package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/internal/workspaces"
)

// discover finds the workspace of dir, and notes where in it dir is.
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

// from makes a path that a person gave in a subdirectory of the workspace one from its
// root. It does not clean it: link/.. is for the tools to see.
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
		return &exitError{exitConfig, err}
	}
	if added && !g.json {
		fmt.Fprintf(g.std.err, "toold: registered the workspace %s\n", cfg.Workspace)
	}
	return nil
}

// elsewhere returns the configuration for other workspaces, by the file as it was read at the start.
func (g *global) elsewhere(cfg config.Config) func(root string) (config.Config, error) {
	return func(root string) (config.Config, error) {
		options := g.options
		options.Path, options.Text, options.Workspace = cfg.File, cfg.Text, root
		return config.Load(options)
	}
}
