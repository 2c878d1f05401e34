package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/describe"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/server"
	"github.com/toold/toold/interop/claude"
	"github.com/toold/toold/interop/hook"
	"github.com/toold/toold/interop/letta"
	"github.com/toold/toold/interop/link"
	"github.com/toold/toold/interop/mcp"
)

func mcpCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use: "mcp", Short: "Be an MCP server on standard input and output, for an agent's client",
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
	ctx, stop := console.Interruptible(ctx, syscall.SIGPIPE)
	defer stop()
	c := &callRun{global: g}
	dial := func(ctx context.Context, role string) (*client.Client, error) {
		return c.dialRunning(ctx, cfg, role, client.Options{Workspace: cfg.Workspace})
	}
	fault := func(panicked any) string { return fmt.Sprintf("a fault in toold: %v", panicked) }
	err = mcp.Serve(link.WithParent(ctx), mcp.Options{Dial: dial, Question: describe.FormQuestion, Page: g.page(cfg), Version: version, Fault: fault}, g.In, g.Out)
	if ctx.Err() != nil || errors.Is(err, link.ErrParentEnded) {
		return nil
	}
	return console.Unreachable(err)
}

func (g *global) page(cfg config.Config) func(id string) string {
	return func(id string) string {
		at, _ := g.daemon(cfg).Endpoint()
		return "http" + strings.TrimSuffix(strings.TrimPrefix(at.URL, "ws"), "/v1/ws") + server.PathOfQuestion(id)
	}
}

// maxEvent is the maximum size of an event of Claude Code's plugin, in bytes.
const maxEvent = 64 << 20

type hooked struct {
	*global
	answer, again, list bool
	timeout             time.Duration
}

func hookCommand(g *global) *cobra.Command {
	h := &hooked{global: g}
	var names []string
	for _, d := range hook.Dialects() {
		names = append(names, d.Name)
	}
	cmd := &cobra.Command{
		Use: "hook DIALECT", Short: "Answer an agent's hook: decide a call that it is about to make",
		Long: "Reads one call from standard input, as the agent describes it, and has the running daemon\n" +
			"decide and record it; the agent carries it out. Where the policy asks, it waits for a\n" +
			"person. Whatever goes wrong, the answer is a denial. Agents start it; see docs/connect.md.\n" +
			"The dialects are " + strings.Join(names, ", ") + ".",
		Args: one, ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error { return h.run(cmd.Context(), args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&g.as, "token", "", "`name` of the token with which calls are made (default: agent)")
	flags.DurationVar(&h.timeout, "timeout", 0, "how `long` to wait for a person: less than the agent gives the hook")
	flags.BoolVar(&h.answer, "answer", false, "claude: carry the call out and print the answer for its plugin")
	flags.BoolVar(&h.again, "again", false, "claude: with --answer: the call was asked for before")
	flags.BoolVar(&h.list, "tools", false, "claude: print the tools that its plugin registers")
	return cmd
}

func (h *hooked) run(ctx context.Context, name string) error {
	i := slices.IndexFunc(hook.Dialects(), func(d hook.Dialect) bool { return d.Name == name })
	dir, err := os.Getwd()
	switch {
	case i < 0:
		return console.Usage(fmt.Errorf("unknown dialect %q; see toold hook --help", name))
	case err != nil:
		return console.Usage(err)
	}
	d := hook.Dialects()[i]
	// Signals must not end the process, because some agents would then run the call.
	ctx, stop := console.UntilCaught(ctx, map[os.Signal]bool{os.Interrupt: true, syscall.SIGTERM: true, syscall.SIGHUP: true, syscall.SIGPIPE: false})
	defer stop()
	ctx = link.WithParent(ctx) // the agent may have ended
	judge := hook.Judge{Program: d.Name, Dial: h.dialFor(d.Name), Wait: cmp.Or(h.timeout, d.Wait)}
	switch {
	case h.list:
		return h.claudeTools(ctx, dir)
	case h.answer:
		return h.answerClaude(ctx, judge, dir)
	}
	a := d.Answer(ctx, judge, dir, h.In)
	fmt.Fprint(h.Err, a.Stderr)
	if _, err := h.Out.Write(a.Stdout); err != nil {
		a.Code = console.ExitUsage // denies for every agent
	}
	if a.Code != 0 {
		return console.Exit(a.Code, nil)
	}
	return nil
}

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

func (h *hooked) claudeTools(ctx context.Context, dir string) error {
	text, err := claude.Session{Dial: h.dialFor("claude"), Dir: dir}.Tools(ctx)
	if err != nil {
		return console.Exit(console.ExitUnreachable, err)
	}
	return h.Data(display.JSON(string(text)))
}

// answerClaude executes a call. While the call runs, the plugin asks again.
func (h *hooked) answerClaude(ctx context.Context, judge hook.Judge, dir string) error {
	text, err := io.ReadAll(io.LimitReader(h.In, maxEvent))
	if err != nil {
		return fmt.Errorf("cannot read the call: %w", err)
	}
	d := claude.Session{
		Dial: h.dialFor("claude"), Dir: dir, ID: os.Getenv("CLAUDE_CODE_LAUNCHED_BY_SESSION_IDS"), Again: h.again, Wait: 20 * time.Second,
	}
	d.Judge = func(ctx context.Context, id, tool string, arguments json.RawMessage) error {
		return judge.Decide(ctx, hook.Call{ID: id, Tool: tool, Dir: dir, Session: d.ID, Input: arguments})
	}
	return h.Emit(d.Answer(ctx, text))
}

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
	ctx, stop := console.Interruptible(ctx, syscall.SIGPIPE)
	defer stop()
	c := &callRun{global: g}
	o.Dir = cfg.Workspace
	o.Dial = func(ctx context.Context, dir string) (*client.Client, error) {
		return c.dialRunning(ctx, cfg, "agent", client.Options{Workspace: dir})
	}
	o.Say = func(text string) { c.say("%s", display.Short(text)) }
	if err := letta.Run(ctx, o); err != nil && !errors.Is(err, context.Canceled) {
		return console.Unreachable(err)
	}
	return nil
}
