package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/internal/reach"
	"github.com/toold/toold/internal/tokens"
)

func tokenCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{Use: "token", Short: "Show, add, rotate and revoke the tokens with which clients connect"}
	add := func(use, short string, args cobra.PositionalArgs, run func(config.Config, string) error) {
		cmd.AddCommand(&cobra.Command{Use: use, Short: short, Args: args, RunE: g.remotely(func(_ context.Context, cfg config.Config, args []string) error {
			return run(cfg, strings.Join(args, ""))
		})})
	}
	add("show [NAME]", "Print a token (default: agent)", cobra.MaximumNArgs(1), func(cfg config.Config, name string) error {
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

type tokenRow struct {
	Name  string    `json:"name"`
	Roles []string  `json:"roles"`
	File  string    `json:"file"`
	Made  time.Time `json:"made,omitzero"` // zero before the daemon's first start
	Error string    `json:"error,omitempty"`
}

func (g *global) listTokens(cfg config.Config) error {
	list := []tokenRow{}
	for _, t := range cfg.Tokens {
		row := tokenRow{Name: t.Name, Roles: t.Roles, File: tokens.In(cfg.StateDir).Configured(t.Name)}
		if token, err := tokens.Read(row.File); err == nil {
			row.Made = token.Made
		} else {
			row.Error = err.Error()
		}
		list = append(list, row)
	}
	agents, err := tokens.In(cfg.StateDir).Agents()
	if err != nil {
		fmt.Fprintln(g.Err, "toold: warning:", err)
	}
	for _, t := range agents {
		list = append(list, tokenRow{Name: t.Name, Roles: []string{"agent"}, File: t.File, Made: t.Made})
	}
	rows := make([][]string, 0, len(list))
	for _, t := range list {
		made := t.Error
		if made == "" {
			made = "made " + t.Made.Local().Format(time.DateTime)
		}
		rows = append(rows, []string{t.Name, strings.Join(t.Roles, ", "), made})
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
