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
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/interop/letta"
)

type lettaServer struct {
	letta.Options
	tokenFile string
}

func (s *lettaServer) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.URL, "url", "", "address of a server of Letta (letta server --listen URL), ws://, wss://, http:// or https://")
	f.StringVar(&s.Agent, "agent", "", "with --url: id of the agent; needed where the server has several")
	f.StringSliceVar(&s.Conversations, "conversation", []string{"default"}, "with --url: `ids` of conversations; may be repeated")
	f.StringVar(&s.tokenFile, "token-file", "", "with --url: file with the token of the server")
	f.DurationVar(&s.AnswerAfter, "answer-after", 270*time.Second, "with --url: when an App Server gets an answer to a call that still runs")
}

func (s *lettaServer) serve(ctx context.Context, g *global) error {
	if s.tokenFile != "" {
		text, err := os.ReadFile(s.tokenFile)
		if err != nil {
			return console.Exit(console.ExitConfig, fmt.Errorf("cannot read the token of the server: %w", err))
		}
		s.Token = strings.TrimSpace(string(text))
	}
	return g.serveLetta(ctx, s.Options)
}

func lettaCommand(g *global) *cobra.Command {
	var server lettaServer
	cmd := &cobra.Command{
		Use: "letta --url ws://HOST:PORT", Short: "Connect a server of Letta with the running daemon",
		Long: "Gives the model of Letta Code conversations toold's tools, and has the daemon decide about\n" +
			"each use of the tools that Letta Code has itself. The conversations are switched to the\n" +
			"permission mode strict. With http:// or https:// it answers what a server of the older\n" +
			"protocol asks in its message stream. Runs until it is interrupted; when the daemon does\n" +
			"not answer, nothing runs. See docs/connect.md.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return server.serve(cmd.Context(), g) },
	}
	server.flags(cmd)
	cmd.MarkFlagRequired("url")
	return cmd
}

func (g *global) serveLetta(ctx context.Context, o letta.Options) error {
	cfg, err := g.load()
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	c := &callRun{global: g}
	o.Dir = cfg.Workspace
	o.Dial = func(ctx context.Context, dir string) (*client.Client, error) {
		return c.dialRunning(ctx, cfg, "agent", client.Options{Workspace: dir})
	}
	o.Say = func(text string) { c.say("%s", display.Short(text)) }
	if err := letta.Run(ctx, o); err != nil && !errors.Is(err, context.Canceled) {
		return console.Exit(console.ExitUnreachable, err)
	}
	return nil
}
