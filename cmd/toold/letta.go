package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toold/toold/client"
	"github.com/toold/toold/interop/letta"
)

func lettaCommand(g *global) *cobra.Command {
	var o letta.Options
	var tokenFile string
	cmd := &cobra.Command{
		Use: "letta --url ws://HOST:PORT", Short: "Connect a server of Letta with the running daemon",
		Long: "Gives the model of Letta Code conversations toold's tools, and has the daemon decide about\n" +
			"each use of the tools that Letta Code has itself. The conversations are switched to the\n" +
			"permission mode strict. With http:// or https:// it answers what a server of the older\n" +
			"protocol asks in its message stream. Runs until it is interrupted; when the daemon does\n" +
			"not answer, nothing runs. See docs/connect.md.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if tokenFile != "" {
				text, err := os.ReadFile(tokenFile)
				if err != nil {
					return &exitError{exitConfig, fmt.Errorf("cannot read the token of the server: %w", err)}
				}
				o.Token = strings.TrimSpace(string(text))
			}
			return g.serveLetta(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.URL, "url", "", "address of the server (letta server --listen URL), ws://, wss://, http:// or https://")
	f.StringVar(&o.Agent, "agent", "", "id of the agent; needed where the server has several")
	f.StringSliceVar(&o.Conversations, "conversation", []string{"default"}, "`ids` of conversations; may be repeated")
	f.StringVar(&tokenFile, "token-file", "", "file with the token of the server")
	f.DurationVar(&o.AnswerAfter, "answer-after", 270*time.Second, "when an App Server gets an answer to a call that still runs")
	cmd.MarkFlagRequired("url")
	return cmd
}

func (g *global) serveLetta(ctx context.Context, o letta.Options) error {
	cfg, err := g.load()
	if err != nil {
		return err
	}
	ctx, interrupted := interruptible(ctx)
	defer interrupted.stop()
	c := &callRun{global: g}
	o.Dir = cfg.Workspace
	o.Dial = func(ctx context.Context, dir string) (*client.Client, error) {
		return c.dialRunning(ctx, cfg, "agent", client.Options{Workspace: dir})
	}
	o.Say = func(text string) { c.say("%s", oneLine(text)) }
	if err := letta.Run(ctx, o); err != nil && !errors.Is(err, context.Canceled) {
		return &exitError{exitUnreachable, err}
	}
	return nil
}
