package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toold/toold/client"
	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/loopback"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/cgroup"
)

type finding struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Is   string `json:"is,omitempty"`
	Fix  string `json:"fix,omitempty"` // a command or step
}

func doctorCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Try what this machine offers, and say how to fix what is missing", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return g.doctor(cmd.Context()) },
	}
}

func (g *global) doctor(ctx context.Context) error {
	findings := append(append(confinementFindings(ctx), apparmorFindings()...), groupsFinding())
	cfg, err := g.readConfig(g.options)
	if err == nil {
		findings = append(findings, configFinding(cfg), watchFinding(cfg))
	} else {
		findings = append(findings, finding{Name: "configuration", Is: err.Error(), Fix: "correct what is named above; --config FILE takes another file"})
		options := g.options
		options.For = config.JudgeCalls // in the home directory all else may be right
		cfg, err = g.readConfig(options)
	}
	if err == nil {
		held := tierFinding(ctx, &cfg)
		findings = append(findings, terminalFinding(cfg), held, policyFinding(cfg), g.warmFinding(ctx, cfg),
			stateFinding(cfg), cacheFinding(ctx, cfg), g.portFinding(ctx, cfg), quarantineFinding(cfg))
		findings = append(findings, g.runningPolicyFinding(ctx, cfg)...)
		findings = append(findings, storeFinding(ctx, cfg)...)
		findings = append(findings, g.agentFindings(ctx, cfg)...)
	}
	return g.printFindings(findings)
}

func configFinding(cfg config.Config) finding {
	is := append([]string{cmp.Or(cfg.File, "none; the defaults hold")}, cfg.Warnings...)
	return finding{Name: "configuration", OK: true, Is: strings.Join(is, "; ")}
}

func confinementFindings(ctx context.Context) []finding {
	var list []finding
	for _, f := range sandbox.Probe(ctx).Features {
		list = append(list, finding{Name: f.Name, OK: f.OK, Is: cmp.Or(f.Why, f.Detail), Fix: f.Fix})
	}
	return list
}

func groupsFinding() finding {
	f := finding{Name: "control groups", OK: true}
	groups, err := cgroup.Open()
	switch {
	case err != nil && os.Getuid() == 0:
		f.Is = fmt.Sprintf("none: %v; before Linux 6.14 nothing else bounds how many processes a call of root has", err)
	case err != nil:
		f.Is = fmt.Sprintf("none, and the limits of a process hold instead: %v", err)
	case groups.Memory():
		f.Is = "each call has one below " + groups.Dir() + ", which bounds its processes and its memory"
	default:
		f.Is = "each call has one below " + groups.Dir() + ", which bounds its processes; memory is summed up ten times a second"
	}
	groups.Close()
	return f
}

// tierFinding completes the profile.
func tierFinding(ctx context.Context, cfg *config.Config) finding {
	groups, _ := cgroup.Open()
	defer groups.Close()
	cfg.Sandbox.Groups = groups
	profile, held, err := sandbox.Choose(ctx, cfg.Sandbox, cfg.Lowest)
	cfg.Sandbox = profile
	cfg.Sandbox.Groups = nil
	if err != nil {
		return finding{Name: "sandbox", Is: err.Error(), Fix: "until then no command runs"}
	}
	wanted := profile.Tier == sandbox.TierBwrap && profile.Launcher == "bwrap"
	f := finding{Name: "sandbox", OK: held.Degraded == "" || wanted, Is: console.Sandbox(held)}
	if held.Degraded != "" {
		f.Is += "; " + held.Degraded
	}
	return f
}

func terminalFinding(cfg config.Config) finding {
	err := executor.Probe()
	if err != nil && cfg.Terminal == executor.Off.String() {
		return finding{Name: "pseudo-terminals", OK: true, Is: "none, and terminal: off needs none"}
	}
	if err != nil {
		return finding{Name: "pseudo-terminals", Is: err.Error(), Fix: "mount -t devpts devpts /dev/pts"}
	}
	return finding{Name: "pseudo-terminals", OK: true}
}

func (g *global) warmFinding(ctx context.Context, cfg config.Config) finding {
	f := finding{Name: "warm shells", OK: true, Is: fmt.Sprintf("%d wait for the next commands", cfg.WarmShells)}
	reuses, err := executor.ProbePool(ctx, daemon.Command(cfg))
	switch {
	case errors.Is(err, sandbox.ErrUnavailable):
		f.Is = "none without the sandbox"
	case err != nil:
		f.Is = fmt.Sprintf("none: %v; each command starts its own shell", err)
	case cfg.WarmShells == 0:
		f.Is = "none are wanted (warm_shells: 0)"
	}
	if err == nil && reuses {
		f.Is += "; a sandbox holds several commands in turn"
	} else if err == nil {
		f.Is += "; each command gets a sandbox of its own, which takes longer: chroot(2), pivot_root(2) or clone(2) are refused or the profile has the network"
	}
	counts, _ := g.askDaemon(ctx, cfg, "observer", http.MethodGet, "/metrics") // or no daemon runs
	if _, n, _ := strings.Cut(string(counts), "\ntoold_sandbox_failures_total "); n != "" && n[0] != '0' {
		n, _, _ = strings.Cut(n, "\n")
		f.Is += fmt.Sprintf("; of the running daemon %s failed, of which its log says why (shells, and processes that open files)", n)
	}
	return f
}

func policyFinding(cfg config.Config) finding {
	p, err := daemon.LoadPolicy(cfg)
	if err != nil {
		return finding{Name: "policy", Is: err.Error(), Fix: "correct the file; nothing runs under a policy that cannot be read"}
	}
	found := finding{Name: "policy", OK: true, Is: daemon.PolicyName(cfg)}
	for _, w := range p.Warnings() {
		found.Is += "; " + w
	}
	return found
}

func (g *global) runningPolicyFinding(ctx context.Context, cfg config.Config) []finding {
	last, err := g.askReload(ctx, cfg, http.MethodGet)
	switch {
	case err != nil:
		return nil
	case last.Error != "":
		return []finding{{Name: "policy of the running daemon", Is: "the last good one stays in force: " + last.Error, Fix: "correct the file, then: toold reload"}}
	}
	return []finding{{Name: "policy of the running daemon", OK: true, Is: last.Policy}}
}

const stateRoom = 8 << 20

func stateFinding(cfg config.Config) finding {
	err := writeProbe(cfg.StateDir)
	var kept int64
	if err == nil {
		kept, err = daemon.KeptBytes(cfg)
	}
	if err != nil {
		return finding{Name: "state directory", Is: err.Error(), Fix: "choose another directory with --state-dir, or: mkdir -p -m 700 " + cfg.StateDir}
	}
	is := fmt.Sprintf("%s; %s are kept of at most %s", cfg.StateDir, console.Size(kept), console.Size(cfg.Limits.StateBytes))
	if kept > cfg.Limits.StateBytes {
		return finding{Name: "state directory", Is: is, Fix: "a running daemon removes what is oldest, and refuses new calls while calls use the rest: raise limits.state_bytes, or wait until calls have ended"}
	}
	if journal.HeadInside(cfg.StateDir) {
		is += "; " + cfg.HeadDir() + " could not be made, so a state directory that is replaced as a whole goes unnoticed"
	}
	return finding{Name: "state directory", OK: true, Is: is}
}

func writeProbe(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	probe := filepath.Join(dir, fmt.Sprintf("doctor-%d", os.Getpid()))
	f, err := os.OpenFile(probe, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, stateRoom))
	return errors.Join(err, f.Sync(), f.Close(), os.Remove(probe))
}

func (g *global) portFinding(ctx context.Context, cfg config.Config) finding {
	p, err := g.reach(ctx, cfg, client.Options{Silent: true})
	switch {
	case err == nil:
		p.close()
		return finding{Name: "address", OK: true, Is: "a daemon serves " + p.at.URL + " already"}
	case !errors.Is(err, errNoDaemon):
		return finding{Name: "address", Is: err.Error(), Fix: "restart the daemon: toold serve"}
	}
	l, err := loopback.Listen("tcp", cfg.Listen)
	if err != nil {
		return finding{Name: "address", Is: err.Error(), Fix: "choose another address with --listen, e.g. --listen 127.0.0.1:0"}
	}
	l.Close()
	return finding{Name: "address", OK: true, Is: cfg.Listen + " is free"}
}

func (g *global) printFindings(findings []finding) error {
	failed := 0
	for _, f := range findings {
		if !f.OK {
			failed++
		}
		if !g.JSON {
			printFinding(g, f)
		}
	}
	if g.JSON {
		if err := g.Emit(findings); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(findings))
	}
	return nil
}

// longFinding is the length from which each sentence gets a line.
const longFinding = 100

func printFinding(g *global, f finding) {
	word := "ok  "
	if !f.OK {
		word = "FAIL"
	}
	is := f.Is
	if len(is) > longFinding {
		is = strings.ReplaceAll(is, "; ", "\n")
	}
	is = strings.ReplaceAll(is, "\n", "\n      ")
	fmt.Fprintf(g.Out, "%s  %s", word, f.Name)
	if is != "" {
		fmt.Fprintf(g.Out, ": %s", is)
	}
	fmt.Fprintln(g.Out)
	if !f.OK && f.Fix != "" {
		fmt.Fprintf(g.Out, "      fix: %s\n", f.Fix)
	}
}
