//go:build linux

package conformance

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toold/toold/conformance/suite"
	"github.com/toold/toold/conformance/suite/execution"
	"github.com/toold/toold/internal/must"
)

// TestExecCases plays the case files against the daemon. Cases that take minutes
// run beside all others.
func TestExecCases(t *testing.T) {
	t.Parallel()
	playExecs(t, false)
}

// TestExecCasesThatLoad plays the cases that load the machine, one after the other and
// before all that run side by side.
func TestExecCasesThatLoad(t *testing.T) { playExecs(t, true) }

func playExecs(t *testing.T, alone bool) {
	lines, err := execution.Read(namedFiles("TOOLD_CASES_EXEC", "exec.jsonl", "exec-own.jsonl")...)
	if err != nil {
		t.Fatal(err)
	}
	bin := daemonOrSkip(t)
	found := finder(slices.Clone(lines))
	lines = slices.DeleteFunc(lines, func(l execution.Line) bool { return loads(l.Case) != alone })
	executed.begin(len(lines))
	slow := map[string]chan []string{}
	for _, l := range lines {
		if l.Err == nil && l.Case.Options.Slow && !testing.Short() {
			base, result := t.TempDir(), make(chan []string, 1)
			slow[l.Case.ID] = result
			try := execTrial(t.Context(), bin, l.Case, found)
			var playing sync.WaitGroup
			// Ends with the case; its test below waits for it. Without one, since -run names others, the end of
			// this test cancels it.
			playing.Go(func() { result <- try.Play(base, beside, again(l.Case.ID)) })
			t.Cleanup(playing.Wait)
		}
	}
	for _, l := range lines {
		t.Run(l.Case.ID, func(t *testing.T) {
			if why := execNotApplicable(l); why != "" {
				executed.skip(l.Case.ID, why)
				t.Skip("not applicable: " + why)
			}
			if !alone {
				t.Parallel()
			}
			if result := slow[l.Case.ID]; result != nil {
				report(t, l.Case.ID, <-result)
				return
			}
			if l.Err != nil {
				report(t, l.Case.ID, []string{fmt.Sprintf("%s: cannot read the case: %v", l.Place, l.Err)})
				return
			}
			try := execTrial(t.Context(), bin, l.Case, found)
			report(t, l.Case.ID, try.Play(t.TempDir(), turn, again(l.Case.ID)))
		})
	}
}

// A case that takes minutes begins before it is known whether -run names it.
func TestNoDaemonOutlivesItsTest(t *testing.T) {
	t.Parallel()
	bin := daemonOrSkip(t)
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestExecCases$/^T04$")
	cmd.Env = append(cmd.Environ(), "TMPDIR="+dir, underTest.variable+"="+bin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	for _, path := range must.Get(filepath.Glob("/proc/[0-9]*/cmdline"))(t) {
		line, _ := os.ReadFile(path) // it may have ended by now
		if strings.Contains(string(line), dir) {
			t.Errorf("after its test there is %q", line)
		}
	}
}

func execTrial(ctx context.Context, bin string, c execution.Case, found func(string) (execution.Case, bool)) suite.Trial {
	return func(base string) (reasons, late []string) { return playExec(ctx, bin, base, c, found) }
}

// loads reports whether a case loads the machine: what others measure would be its.
func loads(c execution.Case) bool { return c.Options.MaxProcesses > 0 || c.Options.Parallel > 1 }

// report counts a case and returns why it failed.
func report(t *testing.T, id string, reasons []string) {
	executed.count(id, reasons)
	for _, why := range reasons {
		t.Error(why)
	}
}

// finder finds the cases to which others refer.
func finder(lines []execution.Line) func(id string) (execution.Case, bool) {
	return func(id string) (execution.Case, bool) {
		i := slices.IndexFunc(lines, func(l execution.Line) bool { return l.Case.ID == id && l.Err == nil })
		if i < 0 {
			return execution.Case{}, false
		}
		return lines[i].Case, true
	}
}

// execNotApplicable returns why a case cannot be played here, "" if it can.
func execNotApplicable(l execution.Line) string {
	switch {
	case l.Err != nil:
		return ""
	case l.Case.Options.Slow && testing.Short():
		return "it takes minutes, and the tests run with -short"
	case l.Case.Options.StepClockAtMS != nil:
		return stepRefused()
	}
	return ""
}

// TestExecRunnerFailsFalseCases plays cases that expect what does not happen. A
// runner that passes one of them would pass anything.
func TestExecRunnerFailsFalseCases(t *testing.T) {
	t.Parallel()
	lines, err := execution.Read(filepath.Join("testdata", "exec-false.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) == 0 {
		t.Fatal("there is no false case")
	}
	bin := daemonOrSkip(t)
	for i, l := range lines {
		t.Run(l.Case.ID, func(t *testing.T) {
			skipMostFalse(t, i)
			t.Parallel()
			var reasons []string
			if l.Err != nil {
				reasons = []string{l.Err.Error()}
			} else {
				defer turn(false)()
				bad, late := playExec(t.Context(), bin, t.TempDir(), l.Case, finder(lines))
				reasons = append(bad, late...)
			}
			all := strings.Join(reasons, "\n")
			if l.Case.MustFail == "" || !regexp.MustCompile(l.Case.MustFail).MatchString(all) {
				t.Errorf("the case failed with %q, want %q", all, l.Case.MustFail)
			}
		})
	}
}
