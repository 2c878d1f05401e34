// Package doctor tests what this machine supports, and says how to fix what is missing.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/audit"
	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/internal/describe"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/loopback"
	"github.com/toold/toold/internal/reach"
	"github.com/toold/toold/internal/store"
	"github.com/toold/toold/sandbox/quarantine"
)

// Machine checks what calls need from the machine.
func Machine(ctx context.Context) []Finding {
	return append(append(confinementFindings(ctx), apparmorFindings()...), groupsFinding())
}

// Configuration checks cfg, or reports err, the error of reading it for running calls.
func Configuration(cfg config.Config, err error) []Finding {
	if err != nil {
		return []Finding{{Name: "configuration", Is: err.Error(), Fix: "correct what is named above; --config FILE takes another file"}}
	}
	return []Finding{configFinding(cfg), watchFinding(cfg)}
}

// Daemon checks what a daemon with its configuration would have, and the running daemon.
func Daemon(ctx context.Context, d reach.Daemon) []Finding {
	cfg := d.Config
	tier := tierFinding(ctx, &cfg)
	list := []Finding{
		terminalFinding(cfg), tier, policyFinding(cfg), warmFinding(ctx, d, cfg),
		stateFinding(cfg), cacheFinding(ctx, cfg), portFinding(ctx, d), quarantineFinding(cfg),
	}
	if other := d.OtherVersion(); other != "" {
		list = append(list, Finding{Name: "version of the running daemon", Is: other, Fix: "toold down && toold up"})
	}
	return append(append(list, runningPolicyFinding(ctx, d)...), storeFinding(ctx, cfg)...)
}

// Finding is the result of a check.
type Finding struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Is   string `json:"is,omitempty"`
	Fix  string `json:"fix,omitempty"` // command or step
}

func configFinding(cfg config.Config) Finding {
	is := append([]string{cmp.Or(cfg.File, "none; the defaults hold")}, cfg.Warnings...)
	return Finding{Name: "configuration", OK: true, Is: strings.Join(is, "; ")}
}

func policyFinding(cfg config.Config) Finding {
	p, err := daemon.LoadPolicy(cfg)
	if err != nil {
		return Finding{Name: "policy", Is: err.Error(), Fix: "correct the file; nothing runs under a policy that cannot be read"}
	}
	found := Finding{Name: "policy", OK: true, Is: cfg.PolicyName()}
	for _, w := range p.Warnings() {
		found.Is += "; " + w
	}
	return found
}

func runningPolicyFinding(ctx context.Context, d reach.Daemon) []Finding {
	last, err := d.Reload(ctx, http.MethodGet)
	switch {
	case err != nil:
		return nil
	case last.Error != "":
		return []Finding{{Name: "policy of the running daemon", Is: "the last good one stays in force: " + last.Error, Fix: "correct the file, then: toold reload"}}
	}
	return []Finding{{Name: "policy of the running daemon", OK: true, Is: last.Policy}}
}

const stateRoom = 8 << 20

func stateFinding(cfg config.Config) Finding {
	if err := writeProbe(cfg.StateDir); err != nil {
		return Finding{Name: "state directory", Is: err.Error(), Fix: "choose another directory with --state-dir, or " + unwritable(err, cfg.StateDir)}
	}
	kept, err := daemon.KeptBytes(cfg)
	is := fmt.Sprintf("%s; %s are kept of at most %s", cfg.StateDir, describe.Size(kept), describe.Size(cfg.Limits.StateBytes))
	if err != nil {
		is = fmt.Sprintf("%s; %v", cfg.StateDir, err)
	}
	if err != nil || kept > cfg.Limits.StateBytes {
		return Finding{Name: "state directory", Is: is, Fix: "a running daemon removes what is oldest, and refuses new calls while calls use the rest: raise limits.state_bytes, or wait until calls have ended"}
	}
	if journal.HeadInside(cfg.StateDir) {
		is += "; " + cfg.HeadDir() + " could not be made, so a state directory that is replaced as a whole goes unnoticed"
	}
	return Finding{Name: "state directory", OK: true, Is: is}
}

// unwritable returns what makes a directory writable.
func unwritable(err error, dir string) string {
	switch {
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return "make room: du -sh " + dir + "/*"
	case errors.Is(err, syscall.EROFS):
		return "make its file system writable: findmnt -T " + dir
	}
	return "make it yours: mkdir -p -m 700 " + dir
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

func portFinding(ctx context.Context, d reach.Daemon) Finding {
	c, err := d.Agent(ctx, client.Options{Name: "toold call", Silent: true})
	switch {
	case err == nil:
		c.Close()
		at, _ := d.Endpoint()
		return Finding{Name: "address", OK: true, Is: "a daemon serves " + at.URL + " already"}
	case !errors.Is(err, reach.ErrNotRunning):
		return Finding{Name: "address", Is: err.Error(), Fix: "restart the daemon: toold down; toold up"}
	}
	l, err := loopback.Listen("tcp", d.Config.Listen)
	if err != nil {
		return Finding{Name: "address", Is: err.Error(), Fix: "choose another address with --listen, e.g. --listen 127.0.0.1:0"}
	}
	l.Close()
	return Finding{Name: "address", OK: true, Is: d.Config.Listen + " is free"}
}

// Print prints findings. The error counts those that are not OK.
func Print(c console.Console, findings []Finding) error {
	failed := 0
	for _, f := range findings {
		if !f.OK {
			failed++
		}
		if !c.JSON {
			printFinding(c, f)
		}
	}
	if c.JSON {
		if err := c.Emit(findings); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(findings))
	}
	return nil
}

// longFinding is the length from which each sentence gets its own line.
const longFinding = 100

func printFinding(c console.Console, f Finding) {
	word := "ok  "
	if !f.OK {
		word = "FAIL"
	}
	is := f.Is
	if len(is) > longFinding {
		is = strings.ReplaceAll(is, "; ", "\n")
	}
	is = strings.ReplaceAll(is, "\n", "\n      ")
	fmt.Fprintf(c.Out, "%s  %s", word, f.Name)
	if is != "" {
		fmt.Fprintf(c.Out, ": %s", is)
	}
	fmt.Fprintln(c.Out)
	if !f.OK && f.Fix != "" {
		fmt.Fprintf(c.Out, "      fix: %s\n", f.Fix)
	}
}

func storeFinding(ctx context.Context, cfg config.Config) []Finding {
	if cfg.Store == "" {
		return nil
	}
	f := Finding{Name: "team store", Fix: "calls go on without it; the record is kept here until the store has it"}
	record, err := audit.Open(ctx, cfg)
	if err == nil {
		defer record.Close()
	} else {
		record = nil // no call was made yet, or stateFinding reports the error
	}
	lacks, err := store.Check(ctx, cfg.Store, record)
	switch {
	case err != nil:
		f.Is = err.Error()
	case lacks > 0:
		f.OK, f.Is = true, fmt.Sprintf("it lacks %d records, which a running daemon copies", lacks)
	default:
		f.OK, f.Is = true, "it has the whole journal"
	}
	return []Finding{f}
}

func quarantineFinding(cfg config.Config) Finding {
	f := Finding{Name: "quarantine", OK: true}
	items, err := quarantine.Items(cfg.QuarantineDir())
	if err != nil {
		return Finding{Name: f.Name, Is: err.Error(), Fix: "ls -la " + cfg.QuarantineDir()}
	}
	total := int64(0)
	for _, i := range items {
		total += i.Bytes
	}
	if f.Is = "nothing was removed"; len(items) > 0 {
		f.Is = fmt.Sprintf("%d removed, %s; toold quarantine lists them", len(items), describe.Size(total))
	}
	return f
}
