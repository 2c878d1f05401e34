// Package reach finds the daemon of a configuration and connects to it.
package reach

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/internal/loopback"
	"github.com/toold/toold/internal/server"
	"github.com/toold/toold/internal/statedir"
	"github.com/toold/toold/internal/tokens"
)

// ErrNotRunning means that no daemon runs.
var ErrNotRunning = errors.New("no daemon is running")

// LostError means that no daemon runs since the last one ended without notice. It wraps ErrNotRunning.
type LostError struct {
	URL  string
	PID  int
	Last time.Time // of what was recorded
}

func (e *LostError) Error() string {
	return fmt.Sprintf("%v: that at %s (process %d) was killed, or the machine was: nothing is recorded since %s; start it again in your project: toold up",
		ErrNotRunning, e.URL, e.PID, e.Last.Local().Format(time.DateTime))
}

// Unwrap returns ErrNotRunning.
func (e *LostError) Unwrap() error { return ErrNotRunning }

// Why returns the LostError in an error that wraps ErrNotRunning, otherwise ErrNotRunning.
func Why(err error) error {
	if lost, ok := errors.AsType[*LostError](err); ok {
		return lost
	}
	return ErrNotRunning
}

// Daemon is the daemon of a configuration as its clients see it.
type Daemon struct {
	Config  config.Config
	Named   bool   // the command line names Config.Listen
	As      string // token for calls; "" = the first with the role agent
	Version string
}

// Dial connects with the token of a role.
func (d Daemon) Dial(ctx context.Context, role string, o client.Options) (*client.Client, error) {
	secret, err := d.Secret(role)
	if err != nil {
		return nil, err
	}
	at, err := d.Endpoint()
	if err != nil {
		return nil, err
	}
	o.URL, o.TLS, o.Token, o.Version = at.URL, at.TLS, secret, d.Version
	return client.Dial(ctx, o)
}

// Agent connects for calls. The error wraps ErrNotRunning if no daemon runs, or none has created its tokens. It is a
// *console.ExitError if ForCalls refuses the daemon.
func (d Daemon) Agent(ctx context.Context, o client.Options) (*client.Client, error) {
	at, err := d.ForCalls()
	if err != nil {
		return nil, err
	}
	if _, err := d.Secret("agent"); err != nil && d.As != "" {
		return nil, err
	} else if err != nil {
		return nil, fmt.Errorf("%w (%v)", ErrNotRunning, err)
	}
	c, err := d.Dial(ctx, "agent", o)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("%w: %s: %v", ErrNotRunning, at.URL, err)
	}
	return c, err
}

// Secret returns the first token with a role. For the role agent, it is the token that As names, if As is set.
func (d Daemon) Secret(role string) (string, error) {
	if role == "agent" && d.As != "" {
		file, _, err := Token(d.Config, d.As)
		if err != nil {
			return "", fmt.Errorf("%w; make it with `toold connect` or `toold token add`", err)
		}
		token, err := tokens.Read(file)
		return token.Secret, err
	}
	for _, t := range d.Config.Tokens {
		if slices.Contains(t.Roles, role) {
			token, err := tokens.Read(tokens.In(d.Config.StateDir).Configured(t.Name))
			return token.Secret, err
		}
	}
	return "", errNoRole(role)
}

func errNoRole(role string) error {
	return fmt.Errorf("no token in the configuration has the role %s", role)
}

// Endpoint returns the address of the daemon, whatever its port. A token is only sent to an address on which a daemon
// of the state directory listens, or which --listen names.
func (d Daemon) Endpoint() (at client.Options, err error) {
	where := statedir.Daemon{URL: "ws://" + d.Config.Listen + "/v1/ws", Certificate: d.Config.TLS.Cert}
	if d.Config.TLS.Cert != "" {
		where.URL = "wss://" + d.Config.Listen + "/v1/ws"
	}
	if !d.Named {
		running, ok, err := statedir.Running(d.Config.StateDir)
		switch {
		case err != nil:
			return at, err
		case !ok:
			if left, last, ok := statedir.Left(d.Config.StateDir); ok {
				return at, &LostError{left.URL, left.PID, last}
			}
			return at, fmt.Errorf("%w with the state directory %s; start one in your project: toold up", ErrNotRunning, d.Config.StateDir)
		}
		where = running
	}
	u, err := reachable(where.URL)
	if err != nil {
		return at, err
	}
	at.URL = u.String()
	if where.Certificate != "" {
		at.TLS, err = pinned(where.Certificate)
	}
	return at, err
}

// reachable returns the URL at which clients on this machine reach a daemon that listens on another address.
func reachable(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("cannot tell where the daemon listens: %w", err)
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() == "" || ip != nil && ip.IsUnspecified() {
		u.Host = net.JoinHostPort("localhost", u.Port())
	}
	return u, nil
}

// pinned returns a configuration that trusts only the certificate in a file.
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
		InsecureSkipVerify: true, // names and signers are not checked: VerifyConnection compares the whole certificate
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 || !bytes.Equal(s.PeerCertificates[0].Raw, block.Bytes) {
				return errors.New("who answers there has another certificate than " + file)
			}
			return nil
		},
	}, nil
}

// answerTime limits a request to a daemon that hangs, as a handshake is limited.
const answerTime = 30 * time.Second

// Request sends an HTTP request with the token of a role, and returns the body of the answer.
func (d Daemon) Request(ctx context.Context, role, method, path string) ([]byte, error) {
	secret, err := d.Secret(role)
	if err != nil {
		return nil, err
	}
	at, err := d.Endpoint()
	if err != nil {
		return nil, err
	}
	url := "http" + strings.TrimPrefix(strings.TrimSuffix(at.URL, "/v1/ws"), "ws") + path
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	web := http.Client{Timeout: answerTime, Transport: &http.Transport{DialContext: loopback.Dial, TLSClientConfig: at.TLS, DisableKeepAlives: true}}
	res, err := web.Do(req)
	if err != nil {
		return nil, fmt.Errorf("no daemon answers: %w; start one with `toold serve`, or name another with --listen", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("cannot read the daemon's answer: %w", err)
	}
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusUnprocessableEntity {
		return nil, errors.New(string(bytes.TrimSpace(body)))
	}
	return body, nil
}

// Token returns the file of an existing token, and whether the configuration names it.
func Token(cfg config.Config, name string) (file string, configured bool, err error) {
	file, configured = daemon.TokenFile(cfg, name)
	if configured {
		return file, true, nil
	}
	if err = tokens.CheckName(name); err == nil {
		_, err = os.Lstat(file)
	}
	if err == nil {
		return file, false, nil
	}
	names := slices.Sorted(maps.Keys(daemon.TokenFiles(cfg)))
	agents, _ := tokens.In(cfg.StateDir).Agents()
	for _, t := range agents {
		names = append(names, t.Name)
	}
	return "", false, console.Usage(fmt.Errorf("no token is called %q; there are %s", name, strings.Join(names, ", ")))
}

// Reload reloads the policy (POST), or returns the last result (GET).
func (d Daemon) Reload(ctx context.Context, method string) (answer server.Reloaded, err error) {
	body, err := d.Request(ctx, "approver", method, "/v1/reload")
	if err != nil {
		return answer, err
	}
	return answer, json.Unmarshal(body, &answer)
}

// Private is a daemon in this process with its own tokens, for one call.
type Private struct {
	daemon *daemon.Daemon
	stop   context.CancelFunc
	served chan error
}

// StartPrivate starts a private daemon on a free loopback port, without warm shells and background calls, since there
// is one call and nothing outlives it. It sets Tokens and Single. The daemon ends on Stop, not with ctx.
func StartPrivate(ctx context.Context, o daemon.Options) (*Private, error) {
	cfg := o.Config
	cfg.Listen, cfg.Socket, cfg.TLS = "127.0.0.1:0", "", config.TLS{}
	cfg.WarmShells, cfg.Limits.BackgroundCalls = 0, 0
	o.Config, o.Single, o.Tokens = cfg, true, daemon.FreshTokens(cfg)
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	d, err := daemon.New(ctx, o)
	if err != nil {
		stop()
		if _, ok := errors.AsType[*daemon.ConfigurationError](err); !ok {
			err = console.Exit(console.ExitNotRun, err)
		}
		return nil, err
	}
	p := &Private{d, stop, make(chan error, 1)}
	// Ends when the daemon has drained after Stop.
	go func() { p.served <- d.Serve(ctx) }()
	return p, nil
}

// Stop ends the daemon and waits until it has finished. It must be called once.
func (p *Private) Stop() error {
	p.stop()
	return <-p.served
}

// Dial connects with the token of a role.
func (p *Private) Dial(ctx context.Context, role string, o client.Options) (*client.Client, error) {
	for _, t := range p.daemon.Tokens {
		if slices.Contains(t.Roles, server.Role(role)) {
			o.URL, o.Token, o.Version = p.daemon.URL(), t.Secret, p.daemon.Version
			return client.Dial(ctx, o)
		}
	}
	return nil, errNoRole(role)
}

// TokenInfo is a token without its secret.
type TokenInfo struct {
	Name  string    `json:"name"`
	Roles []string  `json:"roles"`
	File  string    `json:"file"`
	Made  time.Time `json:"made,omitzero"` // zero before the daemon's first start
	Error string    `json:"error,omitempty"`
}

// Tokens lists the tokens of a configuration and of connected agents, even if the error says that some of the latter
// cannot be read.
func Tokens(cfg config.Config) ([]TokenInfo, error) {
	list := []TokenInfo{}
	for _, t := range cfg.Tokens {
		row := TokenInfo{Name: t.Name, Roles: t.Roles, File: tokens.In(cfg.StateDir).Configured(t.Name)}
		if token, err := tokens.Read(row.File); err == nil {
			row.Made = token.Made
		} else {
			row.Error = err.Error()
		}
		list = append(list, row)
	}
	agents, err := tokens.In(cfg.StateDir).Agents()
	for _, t := range agents {
		list = append(list, TokenInfo{Name: t.Name, Roles: []string{"agent"}, File: t.File, Made: t.Made})
	}
	return list, err
}
