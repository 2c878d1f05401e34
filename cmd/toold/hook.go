package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/toold/toold/client"
	"github.com/toold/toold/interop/claude"
)

// maxEvent bounds what an agent says of one call, in bytes.
const maxEvent = 64 << 20

func hookCommand(g *global) *cobra.Command {
	var answer, again, list bool
	cmd := &cobra.Command{
		Use: "hook DIALECT", Short: "Answer an agent's hook: decide a call that it is about to make",
		Long: "Reads one call from standard input, as the agent describes it, and has the running daemon\n" +
			"decide and record it. Agents start it; see docs/connect.md. Whatever goes wrong, the answer\n" +
			"is a denial.",
		Args: one,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := whileWanted(cmd.Context())
			defer stop()
			switch {
			case args[0] != "claude":
				return &exitError{exitUsage, fmt.Errorf("unknown dialect %q; it is claude", args[0])}
			case list:
				return g.claudeTools(ctx)
			}
			return g.answerClaude(ctx, again)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&g.as, "token", "", "`name` of the token with which calls are made (default: agent)")
	flags.BoolVar(&answer, "answer", false, "claude: carry the call out and print the answer for its plugin")
	flags.BoolVar(&again, "again", false, "claude: with --answer: the call was asked for before")
	flags.BoolVar(&list, "tools", false, "claude: print the tools that its plugin registers")
	return cmd
}

// whileWanted ends the context when the agent stops this program, or is gone.
func whileWanted(parent context.Context) (context.Context, func()) {
	ctx, stop := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	ctx, cancel := context.WithCancel(ctx)
	agent := os.Getppid()
	// Ends with the context.
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if os.Getppid() != agent {
					cancel()
				}
			}
		}
	}()
	return ctx, func() { cancel(); stop() }
}

// door is how Claude Code's calls come to the daemon.
func (g *global) door(again bool) (claude.Door, error) {
	dir, err := os.Getwd()
	if err != nil {
		return claude.Door{}, err
	}
	return claude.Door{
		Dial: g.dialFor(claude.Agent), Dir: dir, Session: os.Getenv("CLAUDE_CODE_LAUNCHED_BY_SESSION_IDS"), Again: again, Wait: 20 * time.Second,
		Judge: func(context.Context, []byte) error {
			return errors.New("toold cannot carry this call out, so nothing was done")
		},
	}, nil
}

// dialFor connects an agent to the daemon of the current directory.
func (g *global) dialFor(name string) func(context.Context) (*client.Client, error) {
	return func(ctx context.Context) (*client.Client, error) {
		cfg, err := g.load()
		if err != nil {
			return nil, err
		}
		p, err := g.reach(ctx, cfg, client.Options{Silent: true, Workspace: cfg.Workspace, Name: name})
		if err != nil {
			return nil, err
		}
		return p.agent, nil
	}
}

func (g *global) claudeTools(ctx context.Context) error {
	d, err := g.door(false)
	if err != nil {
		return err
	}
	text, err := d.Tools(ctx)
	if err != nil {
		return &exitError{exitUnreachable, err}
	}
	return g.out(string(text) + "\n")
}

func (g *global) answerClaude(ctx context.Context, again bool) error {
	d, err := g.door(again)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(g.std.in, maxEvent))
	if err != nil {
		return fmt.Errorf("cannot read the call: %w", err)
	}
	return g.emit(d.Answer(ctx, text))
}
