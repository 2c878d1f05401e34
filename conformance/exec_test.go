//go:build linux

package conformance

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
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
	lines, err := readExecCases(namedFiles("TOOLD_CASES_EXEC", "exec.jsonl", "exec-own.jsonl")...)
	if err != nil {
		t.Fatal(err)
	}
	bin := daemonOrSkip(t)
	found := finder(slices.Clone(lines))
	lines = slices.DeleteFunc(lines, func(l execLine) bool { return loads(l.c) != alone })
	executed.begin(len(lines))
	slow := map[string]chan []string{}
	for _, l := range lines {
		if l.err == nil && l.c.Options.Slow && !testing.Short() {
			base, result := t.TempDir(), make(chan []string, 1)
			slow[l.c.ID] = result
			try := execTrial(context.WithoutCancel(t.Context()), bin, l.c, found)
			// Ends with the case; its test below waits for it.
			go func() { result <- try.play(l.c.ID, base, beside) }()
		}
	}
	for _, l := range lines {
		t.Run(l.c.ID, func(t *testing.T) {
			if why := execNotApplicable(l); why != "" {
				executed.skip(l.c.ID, why)
				t.Skip("not applicable: " + why)
			}
			if !alone {
				t.Parallel()
			}
			if result := slow[l.c.ID]; result != nil {
				report(t, l.c.ID, <-result)
				return
			}
			if l.err != nil {
				report(t, l.c.ID, []string{fmt.Sprintf("%s: cannot read the case: %v", l.place, l.err)})
				return
			}
			try := execTrial(t.Context(), bin, l.c, found)
			report(t, l.c.ID, try.play(l.c.ID, t.TempDir(), turn))
		})
	}
}

func execTrial(ctx context.Context, bin string, c execCase, found func(string) (execCase, bool)) trial {
	return func(base string) (reasons, late []string) { return playExec(ctx, bin, base, c, found) }
}

// loads tells whether a case loads the machine: what others measure would be its.
func loads(c execCase) bool { return c.Options.MaxProcesses > 0 || c.Options.Parallel > 1 }

// report counts a case and tells why it failed.
func report(t *testing.T, id string, reasons []string) {
	executed.count(id, reasons)
	for _, why := range reasons {
		t.Error(why)
	}
}

// finder finds the cases to which others refer.
func finder(lines []execLine) func(id string) (execCase, bool) {
	return func(id string) (execCase, bool) {
		i := slices.IndexFunc(lines, func(l execLine) bool { return l.c.ID == id && l.err == nil })
		if i < 0 {
			return execCase{}, false
		}
		return lines[i].c, true
	}
}

// execNotApplicable tells why a case cannot be played here, "" if it can.
func execNotApplicable(l execLine) string {
	switch {
	case l.err != nil:
		return ""
	case l.c.Options.Slow && testing.Short():
		return "it takes minutes, and the tests run with -short"
	case l.c.Options.StepClockAtMS != nil:
		return stepRefused()
	}
	return ""
}

// TestExecRunnerFailsFalseCases plays cases that expect what does not happen. A
// runner that passes one of them would pass anything.
func TestExecRunnerFailsFalseCases(t *testing.T) {
	t.Parallel()
	lines, err := readExecCases(filepath.Join("testdata", "exec-false.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) == 0 {
		t.Fatal("there is no false case")
	}
	bin := daemonOrSkip(t)
	for _, l := range lines {
		t.Run(l.c.ID, func(t *testing.T) {
			t.Parallel()
			var reasons []string
			if l.err != nil {
				reasons = []string{l.err.Error()}
			} else {
				defer turn(false)()
				bad, late := playExec(t.Context(), bin, t.TempDir(), l.c, finder(lines))
				reasons = append(bad, late...)
			}
			all := strings.Join(reasons, "\n")
			if l.c.MustFail == "" || !regexp.MustCompile(l.c.MustFail).MatchString(all) {
				t.Errorf("the case failed with %q, want %q", all, l.c.MustFail)
			}
		})
	}
}
