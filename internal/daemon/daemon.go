// Package daemon builds toold from a configuration: workspaces, tools, policy, journal, dispatcher and server. It
// listens, serves, reloads policies and prunes. Faults of the configuration are *ConfigurationError.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/codex"
	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/loopback"
	"github.com/toold/toold/internal/metrics"
	"github.com/toold/toold/internal/server"
	"github.com/toold/toold/internal/store"
	"github.com/toold/toold/internal/trace"
	"github.com/toold/toold/internal/workspaces"
	"github.com/toold/toold/interop/mcp"
	"github.com/toold/toold/message"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/cgroup"
	"github.com/toold/toold/sandbox/egress"
)

// Protocol is the version of the wire contract, docs/protocol.md.
const Protocol = 1

// ConfigurationError is a fault for the user to correct in the configuration or the policy.
type ConfigurationError struct{ Err error }

func (e *ConfigurationError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *ConfigurationError) Unwrap() error { return e.Err }

// Options configure a Daemon.
type Options struct {
	Config config.Config // of the workspace in which the daemon was started
	// Elsewhere returns the configuration of another workspace; nil = there is none.
	Elsewhere func(root string) (config.Config, error)
	Single    bool // the daemon's clients end with it; see dispatch.Options
	// Tokens are accepted instead of those in files; nil means those of the configuration and of connected agents.
	Tokens  []server.Token
	Version string
	// Question describes a call to an approver, in plain text.
	Question func(message.ApprovalRequest) string
	Log      *zap.Logger
	// Follow reloads policy files that change, and all of them on a signal from Reload.
	Follow bool
	Reload <-chan os.Signal
	// Withdraw is called before the daemon stops listening, perhaps twice; nil = nothing.
	Withdraw func() error
}

// Daemon is an open daemon.
type Daemon struct {
	Options
	policies  *policies
	rulebook  *rulebook
	journal   *journal.Journal
	pruner    *pruner
	calls     *dispatch.Dispatcher
	codex     *codex.Server
	mcp       *mcp.Handler
	server    *server.Server
	traces    *trace.Exporter
	store     *store.Store
	listeners []net.Listener
	pipe      *loopback.Pipe // for clients in this process

	shared
	groups     *cgroup.Root
	ungrouped  error // why calls have no control groups; nil = they have
	workspaces workspaceSet
	home       *workspace // workspace of Config
	failures   failures
}

// shared is what the tools of all workspaces use in common.
type shared struct {
	shells      *executor.Pool
	connections *egress.Slots // of all calls
}

// New opens everything, answers the open calls of a crashed daemon, and listens. The caller must call Serve or Close.
func New(ctx context.Context, o Options) (*Daemon, error) {
	d := &Daemon{Options: o}
	err := d.open(ctx)
	if err == nil {
		err = d.calls.Recover(ctx)
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// open builds the object graph. After an error, Close closes what was opened.
func (d *Daemon) open(ctx context.Context) (err error) {
	if err := MakeStateDir(d.Config); err != nil {
		return err
	}
	if err := d.listen(ctx); err != nil { // before a program could inherit the socket from systemd
		return err
	}
	d.groups, d.ungrouped = cgroup.Open()
	d.shared = shared{executor.NewPool(int(d.Config.WarmShells), d.reportFailure), egress.NewSlots(connectionSlots())}
	d.rulebook = rulebookIn(d.Config.StateDir)
	d.policies = &policies{load: d.reloadAll, home: d.Config, log: d.Log, files: newPolicyWatch(d.Follow, d.Log)}
	d.policies.came.Store(d.Config.Policy != "")
	d.workspaces = workspaceSet{workspaces.NewSet(workspaces.SetOptions[*workspace]{
		Registry: workspaces.In(d.Config.StateDir), Home: d.Config.Workspace, Only: d.Elsewhere == nil,
		Open: d.openWorkspace, Close: (*workspace).close,
	})}
	home, release, err := d.workspaces.Set.Use(ctx, "")
	if err != nil {
		return err
	}
	defer release() // it stays open while it is registered
	d.home = home
	d.policies.last = server.Reloaded{Policy: d.Config.PolicyName(), Warnings: home.warnings}
	if err = d.openJournal(ctx); err != nil {
		return err
	}
	secrets, err := d.tokens()
	if err != nil {
		return err
	}
	approvals := approval.New[message.ApprovalRequest]()
	d.calls = dispatch.New(dispatch.Options{
		Registry: home.registry, Workspaces: d.workspaces, Approvals: approvals, Journal: d.journal, Log: d.Log,
		SpoolDir: spoolDir(d.Config), Recorded: d.pruner.countBytes, Kill: executor.KillIdentity, Redact: d.Config.Redact, Limits: callLimits(d.Config), Single: d.Single,
		Known: known(secrets),
	})
	d.codex = codex.New(codex.Options{Dispatch: d.calls, Workspace: d.Config.Workspace, Home: os.Getenv("HOME"), Linger: d.Config.Limits.Linger, Fault: d.fault})
	d.mcp = d.newMCP(approvals)
	if d.traces, err = trace.New(d.Config.Traces, d.Version, d.reportTraceFailure); err != nil {
		return &ConfigurationError{fmt.Errorf("cannot send traces: %w", err)}
	}
	meter := metrics.New(d.metricsSource())
	d.calls.Observe(meter.Observe)
	d.calls.Observe(d.traces.Observe)
	d.journal.Measure(meter.Synced)
	d.server = server.New(server.Options{
		Reload:  d.policies.reload,
		Policy:  d.policies.state,
		Metrics: meter, Refused: meter.Refused, Store: d.store.Behind,
		Dispatch: d.calls, Codex: d.codex, MCP: d.serveMCP, Approvals: approvals, Journal: d.journal, Log: d.Log, Tokens: secrets,
		Greet: d.hello, Question: d.Question,
		AllowedHosts: d.Config.AllowedHosts, AllowedOrigins: d.Config.AllowedOrigins, OwnOrigins: []string{d.Origin()},
		MaxFrameBytes: d.Config.Limits.MaxFrameBytes, OutboxBytes: d.Config.Limits.OutboxBytes,
		CallsPerConnection: int(d.Config.Limits.CallsPerConnection),
		Connections:        int(d.Config.Limits.Connections), IncomingBytes: d.Config.Limits.IncomingBytes,
		Ping: d.Config.Limits.Ping, Idle: d.Config.Limits.Idle, Linger: d.Config.Limits.Linger,
	})
	return nil
}

func (d *Daemon) openJournal(ctx context.Context) error {
	calls, imported, err := journal.Import(ctx, d.Config.StateDir, false)
	if err != nil {
		return err
	}
	if imported {
		d.Log.Info("imported the journal of 0.1.0-dev; the old one is kept as journal.db.imported", zap.Int("calls", calls))
	}
	if d.journal, err = journal.Open(ctx, d.Config.StateDir, journal.Self()); err != nil {
		return err
	}
	if err := d.journal.Ready(); err != nil {
		d.Log.Error("no call can be recorded, and none is taken", zap.Error(err))
	}
	d.pruner = newPruner(d.Config, d.journal)
	return d.openStore()
}

func (d *Daemon) fault(panicked any) string {
	ref := message.NewID("fault")
	d.Log.Error("a request panicked", zap.String("reference", ref), zap.Any("panic", panicked), zap.Stack("stack"))
	return "a fault in toold; report it with the reference " + ref
}

// Serve serves until ctx ends. Then it stops and answers every running call, closes the connections, and closes the
// daemon.
func (d *Daemon) Serve(ctx context.Context) error {
	defer d.Close()
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var tasks sync.WaitGroup
	// They end with stop.
	tasks.Go(func() { d.calls.SaveReturns(background) })
	tasks.Go(func() { d.prune(background) })
	tasks.Go(func() { d.traces.Run(background) })
	tasks.Go(func() { d.store.Run(background) })
	if d.Follow {
		tasks.Go(func() { d.policies.watch(background, d.Reload, d.policyFiles) })
	}
	defer func() { stop(); tasks.Wait() }()
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
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.Config.Limits.Grace+time.Minute)
	defer cancel()
	err = errors.Join(err, d.calls.Shutdown(limit))
	d.mcp.Close(limit)
	d.withdraw()
	return errors.Join(err, d.server.Shutdown(limit))
}

func (d *Daemon) withdraw() {
	if d.Withdraw == nil {
		return
	}
	if err := d.Withdraw(); err != nil {
		d.Log.Error("clients may still send their tokens to this address after it is closed", zap.Error(err))
	}
}

// Close closes what is open.
func (d *Daemon) Close() {
	d.withdraw()
	if d.codex != nil {
		d.codex.Close()
	}
	if d.mcp != nil {
		d.mcp.Close(context.Background()) // no client is connected
	}
	d.workspaces.Set.Close()
	if d.policies != nil {
		d.policies.files.close()
	}
	d.shells.Close()
	d.groups.Close()
	for _, l := range d.listeners {
		l.Close()
	}
	if d.journal != nil {
		d.journal.Close()
	}
}

// Policy returns the result of the last reload of the policy.
func (d *Daemon) Policy() server.Reloaded { return d.policies.state() }

// Confinement returns what the sandbox enforces in the daemon's own workspace.
func (d *Daemon) Confinement() sandbox.Report { return d.home.confinement }

// MayEscalate returns what approvers may add to the sandbox of a call in the daemon's own workspace.
func (d *Daemon) MayEscalate() *message.MayWiden {
	return (*message.MayWiden)(d.home.cfg.Escalation.Offer(d.home.cfg.Sandbox))
}

// Ungrouped returns why calls have no control groups; nil if they have them.
func (d *Daemon) Ungrouped() error { return d.ungrouped }

func (d *Daemon) helloAck(w *workspace, registered []string) message.HelloAck {
	ack := message.HelloAck{
		Protocol: Protocol, Version: d.Version, Workspace: w.cfg.Workspace, Workspaces: registered,
		Sandbox: message.Sandbox{Profile: w.confinement.Profile, Enforced: append([]string{}, w.confinement.Enforced...), Network: w.confinement.Network, Tier: w.confinement.Tier, Degraded: w.confinement.Degraded, Caches: w.confinement.Caches},
		Limits: map[string]int64{
			"max_frame_bytes": d.Config.Limits.MaxFrameBytes, "outbox_bytes": d.Config.Limits.OutboxBytes,
			"return_bytes": d.Config.Limits.ReturnBytes, "spool_bytes": d.Config.Limits.SpoolBytes,
			"linger_ms": d.Config.Limits.Linger.Milliseconds(), "timeout_ms": d.Config.Limits.Timeout.Milliseconds(),
			"max_timeout_ms":   d.Config.Limits.MaxTimeout.Milliseconds(),
			"concurrent_calls": d.Config.Limits.ConcurrentCalls, "concurrent_per_connection": d.Config.Limits.ConcurrentPerConn,
			"calls_per_connection": d.Config.Limits.CallsPerConnection, "background_calls": d.Config.Limits.BackgroundCalls,
			"background_per_connection": d.Config.Limits.BackgroundPerConn, "background_timeout_ms": d.Config.Limits.BackgroundTimeout.Milliseconds(),
		},
	}
	ack.Sandbox.Proxy = w.confinement.Proxy
	for _, def := range w.registry.Definitions() {
		ack.Tools = append(ack.Tools, message.ToolDefinition{Name: def.Name, Description: def.Description, Parameters: def.Parameters})
	}
	return ack
}

func callLimits(cfg config.Config) dispatch.Limits {
	return dispatch.Limits{
		Concurrent: int(cfg.Limits.ConcurrentCalls), Waiting: int(cfg.Limits.WaitingCalls),
		PerConnection: int(cfg.Limits.ConcurrentPerConn), Background: int(cfg.Limits.BackgroundCalls),
		BackgroundEach: int(cfg.Limits.BackgroundPerConn), AskedHosts: int(cfg.Limits.AskedHosts),
		ReturnBytes: int(cfg.Limits.ReturnBytes), SpoolBytes: cfg.Limits.SpoolBytes,
		Linger: cfg.Limits.Linger, ApprovalTimeout: cfg.ApprovalTime,
	}
}
