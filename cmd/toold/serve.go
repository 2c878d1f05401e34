package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/internal/describe"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/doctor"
	"github.com/toold/toold/internal/reach"
	"github.com/toold/toold/internal/service"
	"github.com/toold/toold/internal/statedir"
	"github.com/toold/toold/internal/tokens"
)

func serveCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "serve", Short: "Serve agents and approvers until told to stop", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return g.serve(cmd.Context()) },
	}
}

func (g *global) serve(ctx context.Context) error {
	cfg, err := g.load()
	if err != nil {
		return err
	}
	log := daemon.NewLogger(g.Err, cfg.LogLevel)
	ctx, stop := untilSignalled(ctx)
	defer stop()
	if err := g.register(ctx, cfg); err != nil {
		return err
	}
	lock, err := daemon.Lock(ctx, cfg)
	if _, is := errors.AsType[*statedir.ServedError](err); is {
		fmt.Fprintf(g.Err, "toold: it serves the workspace %s as well\n", cfg.Workspace)
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	reload, stopReload := hangups()
	defer stopReload()
	d, err := daemon.New(ctx, daemon.Options{
		Config: cfg, Elsewhere: g.elsewhere(cfg), Version: version, Question: describe.FormQuestion, Log: log, Follow: true, Reload: reload, Withdraw: lock.Withdraw,
	})
	if err != nil {
		return err
	}
	policy, file := reach.Follows(cfg)
	err = lock.Publish(statedir.Daemon{Policy: policy, File: file, PID: os.Getpid(), Version: version, URL: d.URL(), Socket: cfg.Socket, Certificate: cfg.TLS.Cert, Background: os.Getenv(service.Background) != ""})
	if err == nil {
		err = g.ready(cfg, d)
	}
	if err != nil {
		d.Close()
		return err
	}
	return d.Serve(ctx)
}

// hangupReloads reports whether SIGHUP reloads: it does if there is no terminal.
func hangupReloads() bool {
	if signal.Ignored(syscall.SIGHUP) { // nohup
		return true
	}
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return true
	}
	tty.Close()
	return false
}

func hangups() (reload chan os.Signal, stop func()) {
	reload = make(chan os.Signal, 1)
	if hangupReloads() {
		signal.Notify(reload, syscall.SIGHUP)
	}
	return reload, func() { signal.Stop(reload) }
}

// untilSignalled returns a context that ends at SIGTERM, SIGINT, SIGHUP (unless it reloads) or SIGQUIT. A second one
// ends the process with its sandboxes. All are caught even if ignored, so that commands start with the defaults.
func untilSignalled(parent context.Context) (context.Context, func()) {
	return console.UntilCaught(parent, map[os.Signal]bool{
		syscall.SIGTERM: true, syscall.SIGINT: true, syscall.SIGPIPE: false,
		syscall.SIGHUP: !hangupReloads(), syscall.SIGQUIT: !signal.Ignored(syscall.SIGQUIT),
	}, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT) // not SIGHUP, since the shell and the terminal may both send it
}

func (g *global) ready(cfg config.Config, d *daemon.Daemon) error {
	if g.JSON {
		addresses := map[string]string{"ws": d.URL(), "http": d.Origin()}
		if cfg.Socket != "" {
			addresses["unix"] = cfg.Socket
		}
		return g.Emit(map[string]any{
			"ready": true, "version": version, "pid": os.Getpid(), "workspace": cfg.Workspace,
			"addresses": addresses, "token_files": daemon.TokenFiles(cfg), "policy": d.Policy(),
		})
	}
	return banner(g.Err, cfg, d)
}

func banner(w io.Writer, cfg config.Config, d *daemon.Daemon) error {
	source := cfg.PolicyName()
	if cfg.Policy == "" {
		source += " (write your own: toold policy init)"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "toold %s\n", version)
	fmt.Fprintf(&b, "  workspace  %s\n", cfg.Workspace)
	fmt.Fprintf(&b, "  policy     %s\n", source)
	fmt.Fprintf(&b, "  sandbox    %s\n", describe.Sandbox(d.Confinement()))
	if flags := describe.WideningFlags(d.MayEscalate()); len(flags) > 0 {
		fmt.Fprintf(&b, "             approvers may widen it for one call: %s (approval.widen)\n", strings.Join(flags, ", "))
	}
	fmt.Fprintf(&b, "  agents     %s\n", d.URL())
	if cfg.Socket != "" {
		fmt.Fprintf(&b, "             unix:%s\n", cfg.Socket)
	}
	fmt.Fprintf(&b, "  tokens     %s (toold token show)\n", tokens.In(cfg.StateDir).Dir())
	fmt.Fprintf(&b, "  journal    %s\n", cfg.StateDir)
	if d.Confinement().Degraded != "" {
		fmt.Fprintf(&b, "  warning    tier %s: %s\n", d.Confinement().Tier, d.Confinement().Degraded)
	}
	for _, w := range d.Policy().Warnings {
		fmt.Fprintf(&b, "  warning    %s\n", display.Short(w))
	}
	if os.Getuid() == 0 {
		b.WriteString("  warning    toold runs as root: what is not confined is done as root\n")
	}
	if os.Getuid() == 0 && d.Ungrouped() != nil {
		fmt.Fprintf(&b, "  warning    before Linux 6.14 the limit on processes does not hold for root without control groups: %s\n", display.Short(d.Ungrouped().Error()))
	}
	b.WriteString("Waiting for calls. Ctrl-C stops; running calls are answered first.\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func reloadCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "reload", Short: "Make the running daemon take up its policy files", Args: cobra.NoArgs,
		RunE: g.remotely(g.reload),
	}
}

func (g *global) reload(ctx context.Context, cfg config.Config, _ []string) error {
	answer, err := g.daemon(cfg).Reload(ctx, http.MethodPost)
	if err != nil {
		return console.Exit(console.ExitUnreachable, err)
	}
	if g.JSON {
		if err := g.Emit(answer); err != nil {
			return err
		}
	}
	if answer.Error != "" {
		return console.Exit(console.ExitConfig, fmt.Errorf("%s\nthe last good policy stays in force", answer.Error))
	}
	for _, w := range answer.Warnings {
		fmt.Fprintln(g.Err, "toold: warning:", w)
	}
	fmt.Fprintln(g.Err, "the daemon follows", answer.Policy)
	return nil
}

func doctorCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "doctor", SuggestFor: []string{"status"}, Short: "Try what this machine offers, and say how to fix what is missing", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return g.doctor(cmd.Context()) },
	}
}

func (g *global) doctor(ctx context.Context) error {
	findings := doctor.Machine(ctx)
	cfg, err := g.readConfig(g.options)
	findings = append(findings, doctor.Configuration(cfg, err)...)
	if err != nil {
		options := g.options
		options.For = config.JudgeCalls // other settings can be checked even in the home directory
		cfg, err = g.readConfig(options)
	}
	if err == nil {
		findings = slices.Concat(findings, doctor.Daemon(ctx, g.daemon(cfg)), g.agents(cfg).Findings(ctx))
	}
	return doctor.Print(g.Console, findings)
}
