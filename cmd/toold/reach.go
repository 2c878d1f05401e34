package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/internal/statedir"
	"github.com/toold/toold/internal/tokens"
	"github.com/toold/toold/internal/workspaces"
)

func (g *global) dial(ctx context.Context, role string) (*client.Client, error) {
	cfg, err := g.remote()
	if err != nil {
		return nil, err
	}
	secret, err := secretOnDisk(cfg, role)
	if err != nil {
		return nil, console.Exit(console.ExitUnreachable, err)
	}
	at, err := g.endpoint(cfg)
	if err != nil {
		return nil, console.Exit(console.ExitUnreachable, err)
	}
	at.Token, at.Name, at.Version, at.Silent = secret, "toold", version, true
	c, err := client.Dial(ctx, at)
	if errors.Is(err, client.ErrUnreachable) {
		return nil, console.Exit(console.ExitUnreachable, fmt.Errorf("%w; start one with `toold serve`, or name another with --listen", err))
	}
	if err != nil {
		return nil, console.Exit(console.ExitUnreachable, err)
	}
	return c, nil
}

var errNoDaemon = errors.New("no daemon is running")

func (g *global) reach(ctx context.Context, cfg config.Config, output client.Options) (*peer, error) {
	at, err := g.endpoint(cfg)
	if err != nil {
		return nil, err
	}
	p := &peer{at: at, secret: func(role string) (string, error) { return g.secretFor(cfg, role) }}
	if _, err := p.secret("agent"); err != nil && g.as != "" {
		return nil, err
	} else if err != nil {
		return nil, fmt.Errorf("%w (%v)", errNoDaemon, err)
	}
	p.agent, err = p.dial(ctx, "agent", output)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("%w: %s: %v", errNoDaemon, at.URL, err)
	}
	if err != nil {
		return nil, fmt.Errorf("the daemon at %s refuses this client: %w", at.URL, err)
	}
	return p, nil
}

// secretFor is the token of a role, for calls the one that --token names.
func (g *global) secretFor(cfg config.Config, role string) (string, error) {
	if role != "agent" || g.as == "" {
		return secretOnDisk(cfg, role)
	}
	file, _, err := existingToken(cfg, g.as)
	if err != nil {
		return "", fmt.Errorf("%w; make it with `toold connect` or `toold token add`", err)
	}
	token, err := tokens.Read(file)
	return token.Secret, err
}

func secretOnDisk(cfg config.Config, role string) (string, error) {
	for _, t := range cfg.Tokens {
		if slices.Contains(t.Roles, role) {
			token, err := tokens.Read(tokens.In(cfg.StateDir).Configured(t.Name))
			return token.Secret, err
		}
	}
	return "", noSuchRole(role)
}

// endpoint is the address of the daemon. A token is sent only to an address on which a daemon of the state directory
// listens, or that --listen names.
func (g *global) endpoint(cfg config.Config) (at client.Options, err error) {
	where := statedir.Daemon{URL: "ws://" + cfg.Listen + "/v1/ws", Certificate: cfg.TLS.Cert}
	if cfg.TLS.Cert != "" {
		where.URL = "wss://" + cfg.Listen + "/v1/ws"
	}
	if g.options.Listen == "" {
		running, ok, err := statedir.Running(cfg.StateDir)
		switch {
		case err != nil:
			return at, err
		case !ok:
			return at, fmt.Errorf("%w with the state directory %s; start one in your project: toold serve", errNoDaemon, cfg.StateDir)
		}
		where = running
	}
	u, err := url.Parse(where.URL)
	if err != nil {
		return at, fmt.Errorf("cannot tell where the daemon listens: %w", err)
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() == "" || ip != nil && ip.IsUnspecified() {
		u.Host = net.JoinHostPort("localhost", u.Port())
	}
	at.URL = u.String()
	if where.Certificate != "" {
		at.TLS, err = pinned(where.Certificate)
	}
	return at, err
}

// pinned trusts only the certificate in a file.
func pinned(file string) (*tls.Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate of the daemon: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("cannot read the certificate of the daemon: %s holds none", file)
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // VerifyConnection checks more
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 || !bytes.Equal(s.PeerCertificates[0].Raw, block.Bytes) {
				return errors.New("who answers there has another certificate than " + file)
			}
			return nil
		},
	}, nil
}

// discover finds the workspace of dir, and its part below.
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
		g.below = below
	}
	return root, nil
}

// from makes a path relative to the workspace. It does not clean it: link/.. is for the tools.
func (g *global) from(path string) string {
	switch {
	case g.below == "" || filepath.IsAbs(path) || len(path) > 0 && path[0] == '~':
		return path
	case path == "":
		return g.below
	}
	return g.below + "/" + path
}

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

// elsewhere returns the configuration of other workspaces, from the file as read at the start.
func (g *global) elsewhere(cfg config.Config) func(root string) (config.Config, error) {
	return func(root string) (config.Config, error) {
		options := g.options
		options.Path, options.Text, options.Workspace = cfg.File, cfg.Text, root
		return config.Load(options)
	}
}
