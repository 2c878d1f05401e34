package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/server"
	"github.com/toold/toold/interop/mcp"
	"github.com/toold/toold/message"
)

func mcpCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use: "mcp", Short: "Be an MCP server on standard input and output, for an agent's client",
		Long: "Offers the tools of the running daemon to a client of the Model Context Protocol, which\n" +
			"starts this program and ends it. Each call is judged, run and recorded by the daemon; when\n" +
			"it does not answer, nothing runs. Where the policy asks, the client's user is asked if the\n" +
			"client can show a form; others can answer too: toold watch.\n\n" +
			"  {\"mcpServers\": {\"toold\": {\"command\": \"toold\", \"args\": [\"mcp\", \"-C\", \"/path/to/project\"]}}}\n\n" +
			"Switch the client's own shell off: see docs/connect.md.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return g.serveMCP(cmd.Context()) },
	}
	cmd.Flags().StringVar(&g.as, "token", "", "`name` of the token with which calls are made (default: agent)")
	return cmd
}

func (g *global) serveMCP(ctx context.Context) error {
	cfg, err := g.load()
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	ctx, end := signal.NotifyContext(ctx, syscall.SIGTERM) // from a client
	defer end()
	c := &callRun{global: g}
	dial := func(ctx context.Context, role string) (*client.Client, error) {
		return c.dialRunning(ctx, cfg, role, client.Options{Workspace: cfg.Workspace})
	}
	fault := func(panicked any) string { return fmt.Sprintf("a fault in toold: %v", panicked) }
	err = mcp.Serve(withParent(ctx), mcp.Options{Dial: dial, Question: formQuestion, Page: g.page(cfg), Version: version, Fault: fault}, g.In, g.Out)
	if ctx.Err() != nil || errors.Is(err, errParentEnded) {
		return nil
	}
	if err != nil {
		return console.Exit(console.ExitUnreachable, err)
	}
	return nil
}

func (g *global) page(cfg config.Config) func(id string) string {
	return func(id string) string {
		at, _ := g.daemon(cfg).Endpoint()
		return "http" + strings.TrimSuffix(strings.TrimPrefix(at.URL, "ws"), "/v1/ws") + server.PathOfQuestion(id)
	}
}

// withParent returns a context that ends with the parent process, which may leave stdin open.
func withParent(ctx context.Context) context.Context {
	ctx, end := context.WithCancelCause(ctx)
	parent := os.Getppid()
	// Ends with ctx, or this process.
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if os.Getppid() != parent {
				end(errParentEnded)
				return
			}
		}
	}()
	return ctx
}

var errParentEnded = errors.New("the program that started this one has ended")

func formQuestion(r message.ApprovalRequest) string {
	return fmt.Sprintf("%s asks: %s\n%s", display.Short(r.Rule), display.Short(r.Reason), console.Question(r, "  "))
}
