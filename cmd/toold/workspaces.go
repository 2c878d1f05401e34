package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/statedir"
	"github.com/toold/toold/internal/workspaces"
)

func workspacesCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use: "workspaces", Short: "List, add and remove the directories in which agents may work", Args: cobra.NoArgs,
		Long: "One daemon serves every registered workspace. A call works in the one that its connection\n" +
			"or its cwd selects, under that workspace's policy, and changes nothing in the others. Only a\n" +
			"person registers a workspace: with add, or by starting toold serve or toold call in it.\n" +
			"A running daemon takes a change up at once.",
		RunE: g.remotely(g.listWorkspaces),
	}
	cmd.AddCommand(&cobra.Command{
		Use: "list", Short: "List the registered workspaces", Args: cobra.NoArgs,
		RunE: g.remotely(g.listWorkspaces),
	}, &cobra.Command{
		Use: "add [PATH]", Short: "Register a workspace (default: the current directory)", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return g.addWorkspace(cmd.Context(), args) },
	}, &cobra.Command{
		Use: "remove PATH", Short: "Serve a workspace no longer; calls that run there finish", Args: one,
		RunE: g.remotely(g.removeWorkspace),
	})
	return cmd
}

type listedWorkspace struct {
	workspaces.Workspace
	Problem string `json:"problem,omitempty"`
}

func (g *global) listWorkspaces(_ context.Context, cfg config.Config, _ []string) error {
	registered, err := workspaces.In(cfg.StateDir).List()
	if err != nil {
		return err
	}
	list := []listedWorkspace{}
	var rows [][]string
	for _, w := range registered {
		l := listedWorkspace{Workspace: w}
		if info, err := os.Stat(w.Path); err != nil {
			l.Problem = err.Error()
		} else if !info.IsDir() {
			l.Problem = w.Path + " is not a directory"
		}
		list = append(list, l)
		rows = append(rows, []string{display.Visible(w.Path), w.AddedAt.Local().Format(time.DateOnly), l.Problem})
	}
	return g.List(list, rows, "no workspace is registered: toold workspaces add PATH")
}

func (g *global) addWorkspace(ctx context.Context, paths []string) error {
	options := g.options
	if options.Workspace = "."; len(paths) == 1 {
		options.Workspace = paths[0]
	}
	cfg, err := config.Load(options)
	if err != nil {
		return console.Exit(console.ExitConfig, err)
	}
	added, err := workspaces.In(cfg.StateDir).Add(ctx, cfg.Workspace)
	if err != nil {
		return err
	}
	text := "registered " + cfg.Workspace
	if !added {
		text = cfg.Workspace + " is registered already"
	}
	if d, running, _ := statedir.Running(cfg.StateDir); running {
		text += "; the daemon at " + d.URL + " serves it"
	}
	return g.Done(map[string]any{"path": cfg.Workspace, "added": added}, text)
}

func (g *global) removeWorkspace(ctx context.Context, cfg config.Config, args []string) error {
	path, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	registry := workspaces.In(cfg.StateDir)
	removed, err := registry.Remove(ctx, path)
	if real, links := filepath.EvalSymlinks(path); err == nil && links == nil && !removed {
		removed, err = registry.Remove(ctx, real)
		path = real
	}
	switch {
	case err != nil:
		return err
	case !removed:
		return errors.New(path + " is no registered workspace; those that are: toold workspaces list")
	}
	return g.Done(map[string]any{"path": path, "removed": true}, "removed "+path+"; calls that run there finish")
}
