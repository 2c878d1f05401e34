package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/internal/reach"
	"github.com/toold/toold/internal/server"
	"github.com/toold/toold/internal/workspaces"
)

// peer is a daemon and the connections to it.
type peer struct {
	connect func(ctx context.Context, role string, o client.Options) (*client.Client, error)
	agent   *client.Client
	person  *client.Client // nil: no one answers
	reader  *client.Client // of recorded output; nil until needed
	tty     *os.File       // nil with --yes
	private func() error   // nil: the daemon was running

	answering sync.WaitGroup
}

func (p *peer) close() {
	for _, c := range []*client.Client{p.agent, p.person, p.reader} {
		if c != nil {
			c.Close()
		}
	}
	if p.tty != nil {
		p.tty.Close() // ends an open question
	}
	p.answering.Wait()
	if p.private != nil {
		p.private()
	}
}

func (p *peer) dial(ctx context.Context, role string) (*client.Client, error) {
	return p.connect(ctx, role, client.Options{Name: "toold call", Silent: true})
}

func (c *callRun) connect(ctx context.Context, cfg config.Config) (*peer, error) {
	if c.below != "" {
		c.say("workspace %s, in %s", cfg.Workspace, c.below)
	}
	if !c.private {
		p, err := c.running(ctx, cfg)
		var none *unservedError
		if !errors.As(err, &none) {
			return p, err
		}
		c.say("%v; this call starts a private one (one that stays: toold serve)", err)
	}
	if c.background {
		return nil, console.Exit(callNotRun, fmt.Errorf("a background call needs a daemon that stays: start one for %s with `toold serve`, then repeat this; or leave background out", cfg.Workspace))
	}
	return startPrivate(ctx, cfg, c.output(""))
}

type unservedError struct{ error }

// running reaches the running daemon and registers the workspace. The error may be an *unservedError.
func (c *callRun) running(ctx context.Context, cfg config.Config) (*peer, error) {
	_, err := c.daemon(cfg).Endpoint()
	var nested *workspaces.NestedError
	switch added, problem := workspaces.In(cfg.StateDir).Add(ctx, cfg.Workspace); {
	case errors.As(problem, &nested):
		return nil, &unservedError{problem}
	case problem != nil:
		return nil, console.Exit(callNotRun, problem)
	case added:
		c.say("registered the workspace %s", cfg.Workspace)
	}
	if errors.Is(err, reach.ErrNone) {
		return nil, &unservedError{reach.ErrNone}
	}
	p, err := c.reach(ctx, cfg, c.output(cfg.Workspace))
	if err != nil {
		return nil, console.Exit(callNotRun, err)
	}
	if works := p.agent.Hello().Workspace; works != cfg.Workspace {
		p.close()
		return nil, &unservedError{fmt.Errorf("the running daemon serves %s only", works)}
	}
	return p, nil
}

func (c *callRun) dialRunning(ctx context.Context, cfg config.Config, role string, o client.Options) (*client.Client, error) {
	p, err := c.running(ctx, cfg)
	var none *unservedError
	switch {
	case errors.As(err, &none):
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

// startPrivate runs a daemon in this process and connects over a socket.
func startPrivate(ctx context.Context, cfg config.Config, output client.Options) (*peer, error) {
	cfg.Listen, cfg.Socket, cfg.TLS = "127.0.0.1:0", "", config.TLS{}
	cfg.WarmShells = 0
	cfg.Limits.BackgroundCalls = 0
	secrets, issue := daemon.FreshTokens(cfg)
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	d, err := daemon.New(ctx, daemon.Options{Config: cfg, Single: true, Tokens: issue, Version: version, Question: formQuestion, Log: zap.NewNop()})
	if err != nil {
		stop()
		if wrong := (*daemon.ConfigurationError)(nil); !errors.As(err, &wrong) {
			err = console.Exit(callNotRun, err)
		}
		return nil, err
	}
	served := make(chan error, 1)
	// Ends when the daemon has drained after stop.
	go func() { served <- d.Serve(ctx) }()
	p := &peer{
		private: func() error { stop(); return <-served },
		connect: func(ctx context.Context, role string, o client.Options) (*client.Client, error) {
			i := slices.IndexFunc(secrets, func(t server.Token) bool { return slices.Contains(t.Roles, server.Role(role)) })
			if i < 0 {
				return nil, fmt.Errorf("no token in the configuration has the role %s", role)
			}
			o.URL, o.Token, o.Version = d.URL(), secrets[i].Secret, version
			return client.Dial(ctx, o)
		},
	}
	output.Name = "toold call"
	if p.agent, err = p.connect(ctx, "agent", output); err != nil {
		if died := p.private(); died != nil {
			err = died
		}
		return nil, console.Exit(callNotRun, err)
	}
	return p, nil
}
