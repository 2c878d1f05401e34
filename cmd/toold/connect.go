package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"go.uber.org/zap"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/server"
)

// peer is the daemon a call is made to, and the connections to it.
type peer struct {
	url     string
	secret  func(role string) (string, error) // token of the first client with a role
	agent   *client.Client
	person  *client.Client // answers questions; nil when nobody does
	reader  *client.Client // of recorded output; nil until it is needed
	tty     *os.File       // where person is asked; nil with --yes
	private func() error   // stops a private daemon; nil for a running one

	answering sync.WaitGroup // for person
}

func (p *peer) close() {
	for _, c := range []*client.Client{p.agent, p.person, p.reader} {
		if c != nil {
			c.Close()
		}
	}
	if p.tty != nil {
		p.tty.Close() // ends a question that is open
	}
	p.answering.Wait()
	if p.private != nil {
		p.private()
	}
}

// dial connects once more, with the token of a role.
func (p *peer) dial(ctx context.Context, role string, o client.Options) (*client.Client, error) {
	secret, err := p.secret(role)
	if err != nil {
		return nil, err
	}
	o.URL, o.Token, o.Name, o.Version = p.url, secret, "toold call", version
	return client.Dial(ctx, o)
}

// connect reaches the running daemon of this workspace, or starts a private one.
func (c *callRun) connect(ctx context.Context, cfg config.Config) (*peer, error) {
	if !c.private {
		p, err := reach(ctx, cfg, c.output())
		switch {
		case err != nil && !errors.Is(err, errNoDaemon):
			return nil, &exitError{callNotRun, err}
		case err == nil && p.agent.Hello().Workspace == cfg.Workspace:
			return p, nil
		case err == nil:
			c.say("the running daemon serves %s; this call gets a private one", p.agent.Hello().Workspace)
			p.close()
		}
	}
	if c.background {
		return nil, &exitError{callNotRun, fmt.Errorf("a background call needs a daemon that stays: start one for %s with `toold serve`, then repeat this; or leave background out", cfg.Workspace)}
	}
	return startPrivate(ctx, cfg, c.output())
}

// output is how the call wants its live output: as cheap as it can be had, or not at
// all.
func (c *callRun) output() client.Options { return client.Options{Silent: c.json, Binary: !c.json} }

// errNoDaemon says that nothing listens where a daemon would.
var errNoDaemon = errors.New("no toold is running there")

// reach connects to a running daemon as an agent.
func reach(ctx context.Context, cfg config.Config, output client.Options) (*peer, error) {
	p := &peer{url: daemonURL(cfg), secret: func(role string) (string, error) { return secretOnDisk(cfg, role) }}
	_, err := p.secret("agent")
	if err != nil {
		return nil, fmt.Errorf("%w (%v)", errNoDaemon, err)
	}
	p.agent, err = p.dial(ctx, "agent", output)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("%w: %s: %v", errNoDaemon, p.url, err)
	}
	if err != nil {
		return nil, fmt.Errorf("the daemon at %s refuses this client: %w", p.url, err)
	}
	return p, nil
}

func secretOnDisk(cfg config.Config, role string) (string, error) {
	for _, t := range cfg.Tokens {
		for _, r := range t.Roles {
			if r == role {
				return readToken(tokenFile(cfg.StateDir, t.Name))
			}
		}
	}
	return "", fmt.Errorf("no token in the configuration has the role %s", role)
}

// startPrivate runs a daemon in this process, with tokens that nobody else
// knows, and connects to it over a real socket.
func startPrivate(ctx context.Context, cfg config.Config, output client.Options) (*peer, error) {
	cfg.Listen, cfg.Socket, cfg.TLS = "127.0.0.1:0", "", config.TLS{}
	cfg.WarmShells = 0             // there is one call
	cfg.Limits.BackgroundCalls = 0 // nothing would be left of it when this call is over
	secrets := freshTokens(cfg)
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	d, err := newDaemon(ctx, cfg, func() ([]server.Token, error) { return secrets, nil }, zap.NewNop())
	if err != nil {
		stop()
		var coded *exitError
		if errors.As(err, &coded) && coded.code == exitFailed {
			coded.code = callNotRun
		}
		return nil, err
	}
	served := make(chan error, 1)
	// Ends when stop has been called and the daemon has drained.
	go func() { served <- d.serve(ctx) }()
	p := &peer{
		url:     d.socketURL(),
		private: func() error { stop(); return <-served },
		secret: func(role string) (string, error) {
			for _, s := range secrets {
				for _, r := range s.Roles {
					if string(r) == role {
						return s.Secret, nil
					}
				}
			}
			return "", fmt.Errorf("no token in the configuration has the role %s", role)
		},
	}
	if p.agent, err = p.dial(ctx, "agent", output); err != nil {
		if died := p.private(); died != nil {
			err = died // that is why
		}
		return nil, &exitError{callNotRun, err}
	}
	return p, nil
}
