package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/codex"
	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/server"
	"github.com/toold/toold/internal/workspaces"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/cgroup"
	"github.com/toold/toold/sandbox/egress"
	"github.com/toold/toold/sandbox/masks"
	"github.com/toold/toold/sandbox/protect"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/bash"
	"github.com/toold/toold/tools/calls"
	"github.com/toold/toold/tools/elsewhere"
	"github.com/toold/toold/tools/files"
)

// daemon is the whole of toold in one process: `serve` runs it for the machine,
// `call` a private one for itself.
type daemon struct {
	cfg       config.Config // of the workspace in which it was started
	elsewhere func(root string) (config.Config, error)
	log       *zap.Logger
	policies  *policies
	book      *rulebook
	journal   *journal.Journal
	calls     *dispatch.Dispatcher
	codex     *codex.Server
	server    *server.Server
	listeners []net.Listener

	shared
	groups     *cgroup.Root
	ungrouped  error // why calls have no control groups
	workspaces served
	home       *unit // in which it was started
}

// shared is what the tools of all workspaces share.
type shared struct {
	shells      *executor.Pool
	connections *egress.Places // of all calls
}

// newDaemon opens everything a daemon needs, answers the calls of a crashed
// predecessor and listens; it serves nothing yet. elsewhere returns the configuration in
// another workspace; nil = the one of cfg is the only one.
func newDaemon(ctx context.Context, cfg config.Config, elsewhere func(root string) (config.Config, error), issued func() (func() []server.Token, error), log *zap.Logger) (*daemon, error) {
	d := &daemon{cfg: cfg, elsewhere: elsewhere, log: log}
	if err := d.open(ctx, issued, log); err != nil {
		d.close()
		return nil, err
	}
	// Being told to stop meanwhile does not leave them unanswered.
	if err := d.calls.Recover(context.WithoutCancel(ctx)); err != nil {
		d.close()
		return nil, &exitError{exitFailed, err}
	}
	return d, nil
}

// open makes the object graph. On error close closes what was opened.
func (d *daemon) open(ctx context.Context, issued func() (func() []server.Token, error), log *zap.Logger) (err error) {
	if err := makeStateDir(d.cfg); err != nil {
		return err
	}
	d.groups, d.ungrouped = cgroup.Open()
	d.shared = shared{executor.NewPool(int(d.cfg.WarmShells)), egress.NewPlaces(connectionPlaces())}
	d.book = rulebookIn(d.cfg.StateDir)
	d.policies = &policies{load: d.reloadAll, name: policyName(d.cfg), log: log, more: make(chan struct{}, 1)}
	d.workspaces = served{workspaces.NewSet(workspaces.SetOptions[*unit]{
		Registry: workspaces.In(d.cfg.StateDir), Home: d.cfg.Workspace, Only: d.elsewhere == nil,
		Open: d.openUnit, Close: (*unit).close,
	})}
	home, release, err := d.workspaces.Set.Use(ctx, "")
	if err != nil {
		return err
	}
	defer release() // it stays open while it is registered
	d.home = home
	d.policies.last = server.Reloaded{Policy: d.policies.name, Warnings: home.warnings}
	if err = d.listen(ctx); err != nil {
		return err
	}
	if d.journal, err = journal.Open(ctx, d.cfg.StateDir, journal.Self()); err != nil {
		return &exitError{exitFailed, err}
	}
	secrets, err := issued()
	if err != nil {
		return &exitError{exitFailed, err}
	}
	approvals := approval.New[message.ApprovalRequest]()
	d.calls = dispatch.New(dispatch.Options{
		Registry: home.registry, Workspaces: d.workspaces, Approvals: approvals, Journal: d.journal, Log: log,
		SpoolDir: filepath.Join(d.cfg.StateDir, "spool"), Kill: executor.KillIdentity, Redact: d.cfg.Redact, Limits: callLimits(d.cfg),
	})
	d.codex = codex.New(codex.Options{Dispatch: d.calls, Workspace: d.cfg.Workspace, Home: os.Getenv("HOME"), Linger: d.cfg.Limits.Linger, Fault: d.fault})
	d.server = server.New(server.Options{
		Reload:   d.policies.reload,
		Policy:   d.policies.state,
		Dispatch: d.calls, Codex: d.codex, Approvals: approvals, Journal: d.journal, Log: log, Tokens: secrets,
		Greet:        d.greet,
		AllowedHosts: d.cfg.AllowedHosts, AllowedOrigins: d.cfg.AllowedOrigins, OwnOrigins: []string{d.origin()},
		MaxFrameBytes: d.cfg.Limits.MaxFrameBytes, OutboxBytes: d.cfg.Limits.OutboxBytes,
		CallsPerConnection: int(d.cfg.Limits.CallsPerConnection),
		Connections:        int(d.cfg.Limits.Connections), IncomingBytes: d.cfg.Limits.IncomingBytes,
		Ping: d.cfg.Limits.Ping, Idle: d.cfg.Limits.Idle, Linger: d.cfg.Limits.Linger,
	})
	return nil
}

// fault logs a panic and returns what its client is told.
func (d *daemon) fault(panicked any) string {
	ref := message.NewID("fault")
	d.log.Error("a request of Codex panicked", zap.String("reference", ref), zap.Any("panic", panicked), zap.Stack("stack"))
	return "a fault in toold; report it with the reference " + ref
}

// makeStateDir makes the folder of all that is kept.
func makeStateDir(cfg config.Config) error {
	if err := os.MkdirAll(cfg.StateDir, 0o700); err != nil {
		return &exitError{exitFailed, fmt.Errorf("cannot make the state directory: %w; choose another one with --state-dir", err)}
	}
	return nil
}

// egressOptions are those of the connections of calls.
func egressOptions(e config.Egress, places *egress.Places) egress.Options {
	return egress.Options{Private: e.Private, OtherNames: e.OtherNames, Places: places}
}

// listed are the hosts that calls may contact without being asked for.
func listed(e config.Egress) func(string, uint16) bool {
	return func(host string, port uint16) bool {
		return slices.ContainsFunc(e.Allow, func(p egress.Pattern) bool { return p.Matches(host, port) })
	}
}

func callLimits(cfg config.Config) dispatch.Limits {
	return dispatch.Limits{
		Concurrent: int(cfg.Limits.ConcurrentCalls), Waiting: int(cfg.Limits.WaitingCalls),
		PerConnection: int(cfg.Limits.ConcurrentPerConn), Background: int(cfg.Limits.BackgroundCalls),
		BackgroundEach: int(cfg.Limits.BackgroundPerConn), AskedHosts: int(cfg.Limits.AskedHosts),
		ReturnBytes: int(cfg.Limits.ReturnBytes), SpoolBytes: cfg.Limits.SpoolBytes,
		SpoolTotal: cfg.Limits.SpoolTotal, SpoolKeep: cfg.Limits.SpoolKeep,
		Linger: cfg.Limits.Linger, ApprovalTimeout: cfg.ApprovalTime,
	}
}

// serve serves until ctx ends, and then drains: every running call is stopped and
// answered before the connections close.
func (d *daemon) serve(ctx context.Context) error {
	defer d.close()
	tending, stop := context.WithCancel(context.WithoutCancel(ctx))
	var tended sync.WaitGroup
	// Both end with stop.
	tended.Go(func() { d.calls.Tend(tending) })
	tended.Go(func() { d.keepTidy(tending) })
	defer func() { stop(); tended.Wait() }()
	failed := make(chan error, len(d.listeners))
	for _, l := range d.listeners {
		// Ends when the server is shut down.
		go func() { failed <- d.server.Serve(l) }()
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.cfg.Limits.Grace+10*time.Second)
	defer cancel()
	return errors.Join(err, d.calls.Shutdown(limit), d.server.Shutdown(limit))
}

func (d *daemon) close() {
	if d.codex != nil {
		d.codex.Close()
	}
	d.workspaces.Set.Close()
	d.shells.Close()
	d.groups.Close()
	for _, l := range d.listeners {
		l.Close()
	}
	if d.journal != nil {
		d.journal.Close()
	}
}

// watchOver watches the workspace and what calls may write, for names that rules keep from
// calls and for those that calls may not change.
func watchOver(cfg config.Config, p *policy.Policy) (*masks.Tracker, *protect.Watcher, error) {
	o := guardOptions(cfg)
	if !guarded(cfg) {
		o.Names = nil // what calls cannot write needs no protection
	}
	return masks.New(o, p)
}

// newRegistry makes the tools of a workspace. Commands run with what is shared; zero values
// will do where nothing is run.
func newRegistry(cfg config.Config, all shared, u *unit) (*tools.Registry, error) {
	var g *protect.Watcher
	if guarded(cfg) {
		g = u.watcher
	}
	if names := executor.NeverPass(executor.EnvOptions{Pass: cfg.Env.Pass, Set: cfg.Env.Set}); len(names) > 0 {
		return nil, &exitError{exitConfig, fmt.Errorf("env: %s cannot be given to commands: such variables change what judged commands mean, or open cloud accounts; remove them from the configuration", strings.Join(names, ", "))}
	}
	opt := files.Options{Workspace: cfg.Workspace, Home: os.Getenv("HOME"), Profile: cfg.Sandbox, Masks: u.masks, Protect: g, Files: &u.files}
	var made *tools.Registry
	judge := elsewhere.New(func() *tools.Registry { return made })
	list := append(files.New(opt), files.NewLook(opt), judge)
	made, err := tools.NewRegistry(append(append(list, calls.New()...), bash.New(bash.Options{
		Workspace: cfg.Workspace, Profile: cfg.Sandbox, Terminal: terminalMode(cfg.Terminal),
		Env:            commandEnv(cfg),
		DefaultTimeout: cfg.Limits.Timeout, MaxTimeout: cfg.Limits.MaxTimeout, Grace: cfg.Limits.Grace, Pool: all.shells, Masks: u.masks, Protect: g,
		MaxBackground: cfg.Limits.BackgroundTimeout, ReturnBytes: cfg.Limits.ReturnBytes, Background: cfg.Limits.BackgroundCalls > 0, Egress: egressOptions(cfg.Egress, all.connections),
	}))...)
	return made, err
}

// commandEnv is the environment of commands. What calls in other workspaces can write is
// not in their PATH either.
func commandEnv(cfg config.Config) []string {
	others, _ := workspaces.In(cfg.StateDir).List() // of a list that cannot be read no workspace is served
	return executor.BaseEnv(executor.EnvOptions{
		From: os.Environ(), Pass: cfg.Env.Pass, Set: cfg.Env.Set, Default: cfg.Sandbox.Caches.Env(),
		Workspace: cfg.Workspace, Others: workspaces.Paths(others),
	})
}

// terminalMode is the mode of a checked configuration.
func terminalMode(name string) executor.Terminal {
	for _, t := range []executor.Terminal{executor.Single, executor.Off} {
		if t.String() == name {
			return t
		}
	}
	return executor.Split
}

// loadPolicy reads the policy file, or takes the built-in policy.
func loadPolicy(cfg config.Config) (*policy.Policy, error) {
	p, err := config.LoadPolicy(cfg.Policy, policyOptions(cfg))
	if err != nil {
		return nil, &exitError{exitConfig, err}
	}
	return p, nil
}

// policyOptions are the places of this machine that a policy refers to.
func policyOptions(cfg config.Config) policy.Options {
	home, err := sandbox.Resolve(os.Getenv("HOME"))
	if err != nil {
		home = ""
	}
	return policy.Options{Workspace: cfg.Workspace, Home: home, Tmp: "/tmp", Protected: protected(cfg), Resolve: resolved}
}

// protected are the daemon's own files, which no call may touch.
func protected(cfg config.Config) []string {
	own := []string{cfg.StateDir}
	for _, file := range []string{cfg.File, cfg.Policy, cfg.Socket, cfg.TLS.Key} {
		if file != "" {
			own = append(own, file)
		}
	}
	return own
}

// resolved is the path with its links resolved, or as it is where that fails.
func resolved(path string) string {
	if canonical, err := sandbox.Resolve(path); err == nil {
		return canonical
	}
	return path
}

// confinement tries what the sandbox needs. What cannot be confined does not
// run, so a daemon that could run nothing does not start.
func confinement(ctx context.Context, cfg config.Config) (sandbox.Profile, sandbox.Report, error) {
	profile, report, err := sandbox.Choose(ctx, cfg.Sandbox, cfg.Lowest)
	if err != nil {
		return profile, report, &exitError{exitFailed, fmt.Errorf("%w\n`toold doctor` tells what this machine lacks and how to mend it", err)}
	}
	return profile, report, nil
}

// listen opens the addresses of the configuration.
func (d *daemon) listen(ctx context.Context) error {
	l, err := listenOn(ctx, d.cfg.Listen)
	if err != nil {
		return err
	}
	d.listeners = append(d.listeners, l)
	if d.cfg.TLS.Cert != "" {
		pair, err := tls.LoadX509KeyPair(d.cfg.TLS.Cert, d.cfg.TLS.Key)
		if err != nil {
			return &exitError{exitConfig, fmt.Errorf("cannot use the TLS certificate: %w", err)}
		}
		d.listeners[0] = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	}
	if d.cfg.Socket == "" {
		return nil
	}
	s, err := listenUnix(d.cfg.Socket)
	if err != nil {
		return &exitError{exitFailed, err}
	}
	d.listeners = append(d.listeners, s)
	return nil
}

// listenUnix listens on a socket that only its owner may use. A socket that
// nobody serves any more is replaced.
func listenUnix(path string) (net.Listener, error) {
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		return nil, fmt.Errorf("cannot listen on %s: another process serves it", path)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		os.Remove(path)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("cannot protect %s: %w", path, err)
	}
	return l, nil
}

// origin is the web origin of the daemon's own pages.
func (d *daemon) origin() string {
	scheme := "http"
	if d.cfg.TLS.Cert != "" {
		scheme = "https"
	}
	return scheme + "://" + d.listeners[0].Addr().String()
}

// socketURL is where clients connect.
func (d *daemon) socketURL() string {
	return "ws" + strings.TrimPrefix(d.origin(), "http") + "/v1/ws"
}

// greeting answers a client that works in a workspace, of those that are
// registered.
func (d *daemon) greeting(u *unit, registered []string) message.HelloAck {
	ack := message.HelloAck{
		Protocol: protocolVersion, Version: version, Workspace: u.cfg.Workspace, Workspaces: registered,
		Sandbox: message.Sandbox{Profile: u.held.Profile, Enforced: append([]string{}, u.held.Enforced...), Network: u.held.Network, Tier: u.held.Tier, Degraded: u.held.Degraded, Caches: u.held.Caches},
		Limits: map[string]int64{
			"max_frame_bytes": d.cfg.Limits.MaxFrameBytes, "outbox_bytes": d.cfg.Limits.OutboxBytes,
			"return_bytes": d.cfg.Limits.ReturnBytes, "spool_bytes": d.cfg.Limits.SpoolBytes,
			"linger_ms": d.cfg.Limits.Linger.Milliseconds(), "timeout_ms": d.cfg.Limits.Timeout.Milliseconds(),
			"max_timeout_ms":   d.cfg.Limits.MaxTimeout.Milliseconds(),
			"concurrent_calls": d.cfg.Limits.ConcurrentCalls, "concurrent_per_connection": d.cfg.Limits.ConcurrentPerConn,
			"calls_per_connection": d.cfg.Limits.CallsPerConnection, "background_calls": d.cfg.Limits.BackgroundCalls,
			"background_per_connection": d.cfg.Limits.BackgroundPerConn, "background_timeout_ms": d.cfg.Limits.BackgroundTimeout.Milliseconds(),
		},
	}
	ack.Sandbox.Proxy = u.held.Proxy
	for _, def := range u.registry.Definitions() {
		ack.Tools = append(ack.Tools, message.ToolDefinition{Name: def.Name, Description: def.Description, Parameters: def.Parameters})
	}
	return ack
}
