package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/internal/describe"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/reach"
	"github.com/toold/toold/internal/statedir"
	"github.com/toold/toold/internal/tokens"
	"github.com/toold/toold/internal/workspaces"
	"github.com/toold/toold/sandbox/quarantine"
)

func workspacesCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use: "workspaces", Short: "List, add and remove the directories in which agents may work", Args: cobra.NoArgs,
		RunE: g.remotely(g.listWorkspaces),
	}
	cmd.AddCommand(&cobra.Command{
		Use: "list", Short: "List the registered workspaces", Args: cobra.NoArgs,
		RunE: g.remotely(g.listWorkspaces),
	}, &cobra.Command{
		Use: "add [PATH]", Short: "Register a workspace (default: the current directory)", Args: optional,
		RunE: func(cmd *cobra.Command, args []string) error { return g.addWorkspace(cmd.Context(), args) },
	}, &cobra.Command{
		Use: "remove PATH", Short: "Serve a workspace no longer; calls that run there finish", Args: one,
		RunE: g.remotely(g.removeWorkspace),
	})
	return cmd
}

type listedWorkspace struct {
	workspaces.Workspace
	Problem string `json:"problem,omitempty"` // why no call can work there
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
	switch {
	case len(paths) == 1 && g.options.Workspace != "":
		return console.Usage(errors.New("-C and PATH both name a workspace: leave one out"))
	case len(paths) == 1:
		g.options.Workspace = paths[0]
	case g.options.Workspace == "" && os.Getenv("TOOLD_WORKSPACE") == "":
		g.options.Workspace = "."
	}
	cfg, err := g.load()
	if err != nil {
		return err
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

func quarantineCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use: "quarantine", Short: "List copies of what was removed from the workspace, put them back or remove them", Args: cobra.NoArgs,
		RunE: g.remotely(g.listQuarantine),
	}
	cmd.AddCommand(&cobra.Command{
		Use: "restore ID", Short: "Put something back to where it was; nothing is replaced", Args: one,
		RunE: g.remotely(g.restore),
	}, &cobra.Command{
		Use: "remove ID", Short: "Remove something for good", Args: one,
		RunE: g.remotely(g.discard),
	})
	return cmd
}

func (g *global) listQuarantine(_ context.Context, cfg config.Config, _ []string) error {
	items, err := quarantine.Items(cfg.QuarantineDir())
	if err != nil {
		return err
	}
	rows := make([][]string, len(items))
	for n, i := range items {
		rows[n] = []string{i.ID, i.At.Local().Format(time.DateTime), describe.Size(i.Bytes), display.Visible(i.From)}
	}
	if err := g.List(append([]quarantine.Item{}, items...), rows, "nothing was removed"); err != nil {
		return err
	}
	if len(items) > 0 && !g.JSON {
		fmt.Fprintf(g.Err, "each is in %s/ID/taken; toold quarantine restore ID puts it back\n", cfg.QuarantineDir())
	}
	return nil
}

func (g *global) restore(_ context.Context, cfg config.Config, args []string) error {
	path, err := quarantine.Restore(cfg.QuarantineDir(), args[0])
	if err != nil {
		return err
	}
	return g.Done(map[string]any{"id": args[0], "restored": path}, "put back: "+display.Line(path))
}

func (g *global) discard(_ context.Context, cfg config.Config, args []string) error {
	id := args[0]
	if err := quarantine.Discard(cfg.QuarantineDir(), id); err != nil {
		return err
	}
	return g.Done(map[string]any{"id": id, "removed": true}, "removed "+display.Line(id))
}

func tokenCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{Use: "token", Short: "Show, add, rotate and revoke the tokens with which clients connect"}
	add := func(use, short string, args cobra.PositionalArgs, run func(config.Config, string) error) {
		cmd.AddCommand(&cobra.Command{Use: use, Short: short, Args: args, RunE: g.remotely(func(_ context.Context, cfg config.Config, args []string) error {
			return run(cfg, strings.Join(args, ""))
		})})
	}
	add("show [NAME]", "Print a token (default: agent)", optional, func(cfg config.Config, name string) error {
		return g.showToken(cfg, cmp.Or(name, "agent"))
	})
	add("list", "List the tokens", cobra.NoArgs, func(cfg config.Config, _ string) error { return g.listTokens(cfg) })
	add("add NAME", "Make a token for an agent, which calls are recorded under", one, g.addToken)
	add("rotate NAME", "Replace a token; connections with the old one end", one, g.rotateToken)
	add("revoke NAME", "Remove the token of an agent; its connections end", one, g.revokeToken)
	return cmd
}

func (g *global) showToken(cfg config.Config, name string) error {
	file, _, err := reach.Token(cfg, name)
	if err != nil {
		return err
	}
	t, err := tokens.Read(file)
	return g.printToken(name, file, t, err)
}

func (g *global) printToken(name, file string, t tokens.Token, err error) error {
	if err != nil {
		return err
	}
	return g.Print(map[string]string{"name": name, "file": file, "token": t.Secret}, t.Secret+"\n")
}

func (g *global) listTokens(cfg config.Config) error {
	list, err := reach.Tokens(cfg)
	if err != nil {
		fmt.Fprintln(g.Err, "toold: warning:", err)
	}
	rows := make([][]string, 0, len(list))
	for _, t := range list {
		rows = append(rows, []string{t.Name, strings.Join(t.Roles, ", "), cmp.Or(t.Error, "made "+t.Made.Local().Format(time.DateTime))})
	}
	return g.List(list, rows, "no tokens")
}

func (g *global) addToken(cfg config.Config, name string) error {
	if err := tokens.CheckName(name); err != nil {
		return console.Usage(err)
	}
	file, configured := daemon.TokenFile(cfg, name)
	if _, err := os.Lstat(file); configured || err == nil {
		return console.Usage(fmt.Errorf("there is a token %q already; print it with `toold token show %s`", name, name))
	}
	t, err := tokens.Make(file)
	return g.printToken(name, file, t, err)
}

func (g *global) rotateToken(cfg config.Config, name string) error {
	file, _, err := reach.Token(cfg, name)
	if err != nil {
		return err
	}
	if _, err := tokens.Rotate(file); err != nil {
		return err
	}
	return g.Done(map[string]any{"name": name, "file": file}, fmt.Sprintf("the token %s is another one now; what has the old one can do nothing with it", name))
}

func (g *global) revokeToken(cfg config.Config, name string) error {
	file, configured, err := reach.Token(cfg, name)
	switch {
	case err != nil:
		return err
	case configured:
		return console.Usage(fmt.Errorf("the token %s belongs to the configuration, and would be made again; replace it with `toold token rotate %s`, or take it out of `tokens` in the configuration file", name, name))
	}
	if err := tokens.Revoke(file); err != nil {
		return err
	}
	return g.Done(map[string]any{"name": name}, fmt.Sprintf("the token %s is revoked; what has it can do nothing with it", name))
}
