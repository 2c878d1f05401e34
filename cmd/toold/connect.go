package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/toold/toold/client"
	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/internal/describe"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/internal/reach"
	"github.com/toold/toold/internal/workspaces"
	"github.com/toold/toold/message"
)

// peer has the connections to the daemon of a call. close closes them, and stops a private daemon.
type peer struct {
	connect func(ctx context.Context, role string, o client.Options) (*client.Client, error)
	agent   *client.Client
	person  *client.Client // nil: no approval requests are answered
	reader  *client.Client // reads recorded output; nil until needed
	tty     *os.File       // terminal for approval requests; nil with --yes
	private func() error   // stops a private daemon; may be nil

	answering sync.WaitGroup // of person
	done      atomic.Bool    // answers no longer matter
}

func (p *peer) close() {
	p.done.Store(true)
	for _, c := range []*client.Client{p.agent, p.person, p.reader} {
		if c != nil {
			c.Close()
		}
	}
	if p.tty != nil {
		p.tty.Close() // ends a read of the answer
	}
	p.answering.Wait()
	if p.private != nil {
		p.private()
	}
}

func (p *peer) dial(ctx context.Context, role string) (*client.Client, error) {
	return p.connect(ctx, role, client.Options{Name: "toold call", Silent: true})
}

// connect connects to the running daemon, or starts a private one.
func (c *callRun) connect(ctx context.Context, cfg config.Config) (*peer, error) {
	switch {
	case c.below != "" && c.placed:
		c.say("workspace %s, in %s", cfg.Workspace, c.below)
	case c.below != "":
		c.say("workspace %s; the arguments of this call do not say that it is about %s", cfg.Workspace, c.below)
	}
	if !c.private {
		p, err := c.running(ctx, cfg)
		var none *unservedError
		if !errors.As(err, &none) {
			return p, err
		}
		c.say("%v; this call starts a private one (one that stays: toold up)", err)
	}
	if c.background {
		return nil, console.Exit(console.ExitNotRun, fmt.Errorf("a background call needs a daemon that stays: start one for %s with `toold up`, then repeat this; or leave background out", cfg.Workspace))
	}
	d, err := reach.StartPrivate(ctx, daemon.Options{Config: cfg, Version: version, Question: describe.FormQuestion, Log: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	p := &peer{private: d.Stop, connect: d.Dial}
	o := c.output("")
	o.Name = "toold call"
	if p.agent, err = d.Dial(ctx, "agent", o); err != nil {
		return nil, console.Exit(console.ExitNotRun, cmp.Or(d.Stop(), err))
	}
	return p, nil
}

type unservedError struct{ error }

// running registers the workspace and connects to the running daemon. After an *unservedError use a private one.
func (c *callRun) running(ctx context.Context, cfg config.Config) (*peer, error) {
	_, err := c.daemon(cfg).ForCalls()
	if _, is := errors.AsType[*console.ExitError](err); is {
		return nil, err
	}
	if other := c.daemon(cfg).OtherVersion(); other != "" {
		c.say("%s", other)
	}
	var nested *workspaces.NestedError
	switch added, problem := workspaces.In(cfg.StateDir).Add(ctx, cfg.Workspace); {
	case errors.As(problem, &nested):
		return nil, &unservedError{problem}
	case problem != nil:
		return nil, console.Exit(console.ExitNotRun, problem)
	case added:
		c.say("registered the workspace %s", cfg.Workspace)
	}
	if errors.Is(err, reach.ErrNotRunning) {
		return nil, &unservedError{reach.Why(err)}
	}
	p, err := c.serving(ctx, cfg)
	var none *unservedError
	if err != nil && !errors.As(err, &none) {
		err = console.Exit(console.ExitNotRun, err)
	}
	return p, err
}

// serving connects to the running daemon. It does not register the workspace.
func (c *callRun) serving(ctx context.Context, cfg config.Config) (*peer, error) {
	p, err := c.reach(ctx, cfg, c.output(cfg.Workspace))
	if err != nil {
		return nil, err
	}
	if works := p.agent.Hello().Workspace; works != cfg.Workspace { // an older daemon has a single workspace
		p.close()
		return nil, &unservedError{fmt.Errorf("the running daemon serves %s only", works)}
	}
	return p, nil
}

func (c *callRun) dialRunning(ctx context.Context, cfg config.Config, role string, o client.Options) (*client.Client, error) {
	p, err := c.serving(ctx, cfg)
	var none *unservedError
	var refused *message.Error
	switch {
	case errors.As(err, &refused) && refused.Type == message.InvalidArguments: // the workspace is not registered
		return nil, console.Exit(console.ExitConfig, errors.New(refused.Message))
	case errors.As(err, &none), errors.Is(err, reach.ErrNotRunning):
		return nil, fmt.Errorf("%w for %s; start one with `toold up`", err, cfg.Workspace)
	case err != nil:
		return nil, err
	case role == "agent" && o.Workspace == cfg.Workspace:
		return p.agent, nil
	}
	defer p.close()
	o.Silent, o.Name = true, "toold call"
	return p.connect(ctx, role, o)
}

func (c *callRun) output(workspace string) client.Options {
	return client.Options{Silent: c.JSON, Binary: !c.JSON, Workspace: workspace}
}

// answerQuestions connects an approver: a person at the terminal, or --yes.
func (c *callRun) answerQuestions(ctx context.Context, p *peer) error {
	if !c.yes {
		if !executor.IsTerminal(c.In) {
			return nil // there is no approver at standard input
		}
		// Standard error may be redirected, so the terminal is opened.
		tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		if err != nil {
			return nil
		}
		p.tty = tty
	}
	var err error
	if p.person, err = p.dial(ctx, "approver"); err != nil {
		return console.Exit(console.ExitNotRun, err)
	}
	c.answers = true
	// Ends with the connection; peer.close waits.
	p.answering.Go(func() {
		p.person.Approvals(ctx, client.ApprovalEvents{Requested: func(r message.ApprovalRequest) {
			if r.CallID == c.id && r.AgentID == "" { // other agents may use the same id
				c.answer(ctx, p, r)
			}
		}})
	})
	return nil
}

// answer decides on one approval request: with --yes, or by asking until an answer is accepted.
func (c *callRun) answer(ctx context.Context, p *peer, r message.ApprovalRequest) {
	if c.yes {
		c.decide(ctx, p, client.Decision{ApprovalID: r.ID, Approve: true, Reason: "--yes was given beforehand", Beforehand: true})
		return
	}
	// Ctrl-C leaves the cursor after the question.
	newline := context.AfterFunc(ctx, func() { fmt.Fprintln(p.tty) })
	defer newline()
	hello := p.agent.Hello()
	_ = console.Show(p.tty, fmt.Sprintf("\n%s asks: %s\n%s%s%s  in %s, %s\n", display.Short(r.Rule), display.Short(r.Reason),
		describe.Asker(r.Asker, "  "), describe.Question(r, "  "), describe.Suggestions(r.Suggestions, "  "), hello.Workspace, describe.WireSandbox(hello.Sandbox)))
	in := bufio.NewReader(p.tty)
	for open := true; open; {
		d := console.AskPerson(in, p.tty, r)
		d.ApprovalID = r.ID
		open = c.decide(ctx, p, d)
	}
}

// decide sends an answer, and reports whether the call still needs one.
func (c *callRun) decide(ctx context.Context, p *peer, d client.Decision) (open bool) {
	_, err := p.person.Decide(ctx, d)
	var refused *message.Error
	switch {
	case err == nil, ctx.Err() != nil, p.done.Load(): // the return may arrive before the answer to Decide
		return false
	case errors.As(err, &refused) && refused.Type == message.InvalidArguments && p.tty != nil:
		fmt.Fprintln(p.tty, display.Short(refused.Message))
		return true
	case refused != nil:
		c.say("%s", refused.Message)
		return false
	}
	c.say("the answer may not have arrived: %v", err)
	return false
}

// daemon returns the daemon of a configuration, or the one that --listen names.
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
		g.below = console.Below(below)
	}
	return root, nil
}

// register registers the workspace, for commands that a person starts in it.
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

// elsewhere returns a function that loads the configuration of another workspace from the file read at the start, and
// with the working directory of the start, which may be removed later.
func (g *global) elsewhere(cfg config.Config) func(root string) (config.Config, error) {
	options := g.options
	options.Path, options.Text = cfg.File, cfg.Text
	options.Dir, _ = os.Getwd()
	return func(root string) (config.Config, error) {
		options := options
		options.Workspace = root
		return config.Load(options)
	}
}
