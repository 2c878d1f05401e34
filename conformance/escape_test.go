//go:build linux

package conformance

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/toold/toold/conformance/suite/escape"
)

var attacked, attackedB, attackedC = attacks{title: "escape"}, attacks{title: "escape in tier B"}, attacks{title: "escape in tier C"}

// TestEscapeCases plays the case files, each case with a daemon in a world of its
// own. What is known to be open stands in testdata/escape-open.json: the test fails
// when something else escapes or breaks, and when something on the list does not.
func TestEscapeCases(t *testing.T) {
	t.Parallel()
	playEscapes(t, &attacked, "escape-open.json", 1, escape.World{}, false)
}

// TestEscapeCasesThatLoad plays those that take all that the machine has, one after
// the other and before all that run side by side, in the tiers that have limits.
func TestEscapeCasesThatLoad(t *testing.T) {
	playEscapes(t, &attacked, "escape-open.json", 1, escape.World{}, true)
	t.Run("InTierB", func(t *testing.T) {
		playEscapes(t, &attackedB, "escape-open-tier-b.json", sample(t), escape.World{Masked: true}, true)
	})
}

// TestEscapeCasesInTierB plays them where the machine refuses calls a /proc of their
// own, as default containers do. testdata/escape-open-tier-b.json is what is open there.
func TestEscapeCasesInTierB(t *testing.T) {
	t.Parallel()
	playEscapes(t, &attackedB, "escape-open-tier-b.json", sample(t), escape.World{Masked: true}, false)
}

// TestEscapeCasesInTierC plays them for an ordinary user on a machine without user
// namespaces, who has asked for tier C. testdata/escape-open-tier-c.json is what is
// open there.
func TestEscapeCasesInTierC(t *testing.T) {
	t.Parallel()
	every := sample(t)
	if v := landlockVersion(); v < 6 {
		t.Skipf("tier C needs version 6 of Landlock, and this kernel has %d", v)
	}
	playEscapes(t, &attackedC, "escape-open-tier-c.json", every, escape.World{Bare: true}, false)
}

// everyCase reports whether TOOLD_CASES=all asks for the cases of which a sample is usual.
// They take some minutes more.
func everyCase() bool { return os.Getenv("TOOLD_CASES") == "all" }

// sample is which part of the cases is played in the lower tiers.
func sample(t *testing.T) (every int) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: the cases are played in tier A only")
	}
	if everyCase() {
		return 1
	}
	return 24
}

// skipMostFalse leaves out three of four cases that try a runner: they need a daemon each.
func skipMostFalse(t *testing.T, i int) {
	t.Helper()
	if i%4 != 0 && !everyCase() {
		t.Skip("one false case of four is played (TOOLD_CASES=all plays the others)")
	}
}

// landlockVersion asks the kernel (landlock_create_ruleset(2)); 0 is none.
func landlockVersion() int {
	const createRuleset, version = 444, 1
	v, _, e := syscall.RawSyscall(createRuleset, 0, 0, version)
	if e != 0 {
		return 0
	}
	return int(v)
}

// playEscapes plays cases in such worlds, one of so many and all that are open, and
// compares what comes of them with the list of these. Alone are those that load the
// machine; the others run side by side.
func playEscapes(t *testing.T, all *attacks, list string, every int, world escape.World, alone bool) {
	cases, err := escape.Read(namedFiles("TOOLD_CASES_ESCAPE", "escape.jsonl", "escape-own.jsonl")...)
	if err != nil {
		t.Fatal(err)
	}
	open, err := readOpenCases(list)
	if err != nil {
		t.Fatal(err)
	}
	world.Programs = escapePrograms(t)
	all.begin(every)
	for i, c := range cases {
		long := strings.HasPrefix(c.ID, "tm-") // a race, tried often
		_, listed := open[c.ID]
		listed = listed || inEveryTier(c)
		if every > 1 && !listed && (long || i%every != 0) || strings.HasPrefix(c.ID, "rs-") != alone {
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			if !alone {
				t.Parallel()
			}
			job := world
			job.Case = c
			got := escape.Outcome{Verdict: "not applicable", Why: cannotPlay(job)}
			if got.Why == "" {
				got = playCase(t, job)
			}
			known, listed := open[c.ID]
			all.count(c.ID, got, listed && known.Verdict == got.Verdict)
			switch {
			case listed && !known.holds(got.Verdict):
				t.Errorf("it is %s now, not %s: take it from the list of open cases (%s)\n%s", got.Verdict, known.Verdict, got.Why, got.Output)
			case got.Bad() && !listed:
				t.Errorf("%s: %s\n%s", got.Verdict, got.Why, got.Output)
			case got.Verdict == "not applicable":
				t.Skip("not applicable: " + got.Why)
			}
		})
	}
}

// inEveryTier tells that a case is always played in all tiers, since what it is about is done
// in another way there.
func inEveryTier(c escape.Case) bool {
	return slices.Contains([]string{"pr-27", "pr-33", "pr-34", "lo-01", "lo-05", "rd-23", "rd-24"}, c.ID)
}

// TestEscapeRunnerSeesEscapes plays attacks against a daemon that confines nothing.
// Each must be seen: where one is not, "blocked" would mean nothing.
func TestEscapeRunnerSeesEscapes(t *testing.T) {
	t.Parallel()
	cases, err := escape.Read(filepath.Join("testdata", "escape-false.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	programs := escapePrograms(t)
	for i, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			skipMostFalse(t, i)
			t.Parallel()
			want := "escaped"
			if c.MustNotHappen == "" {
				want = "broken"
			}
			got := playCase(t, escape.World{Programs: programs, Case: c, Profile: "full"})
			if got.Verdict != want {
				t.Errorf("nothing confines it, and it is %s, not %s: %s\n%s", got.Verdict, want, got.Why, got.Output)
			}
		})
	}
}

// playCase plays a case in a world of its own.
func playCase(t *testing.T, job escape.World) escape.Outcome {
	defer turn(false)()
	got, err := job.Play(t.Context())
	if err != nil {
		return escape.Outcome{Verdict: "broken", Why: err.Error()}
	}
	return got
}

// escapePrograms are the daemon and the program that the attacks run.
func escapePrograms(t *testing.T) map[string]string {
	t.Helper()
	helper, err := attacker.pathOf(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{"toold": daemonOrSkip(t), "e": helper}
}

// attacks counts what became of the cases.
type attacks struct {
	title string
	mu    sync.Mutex
	every int                 // one case of so many was played; 0 = none
	got   map[string][]string // by verdict: the cases, with their reasons
	known int                 // of those that escaped or are broken
	inapt []string            // why cases are not applicable
}

func (a *attacks) begin(every int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.every = every
	if a.got == nil {
		a.got = map[string][]string{}
	}
}

func (a *attacks) count(id string, o escape.Outcome, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	why, _, _ := strings.Cut(o.Why, "\n")
	if o.Verdict == "not applicable" {
		a.inapt = append(a.inapt, why)
	}
	if known {
		a.known++
		why += knownOpen
	}
	a.got[o.Verdict] = append(a.got[o.Verdict], id+": "+why)
}

// knownOpen marks a case of escape-open.json: it escapes, and SECURITY.md says so.
const knownOpen = " (known to be open)"

// print names what escaped although it is not known to, and what is broken, and
// counts the rest in one line. With -v it also names what is known to escape and
// what was not played.
func (a *attacks) print(w io.Writer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.every == 0 {
		return
	}
	for _, verdict := range []string{"escaped", "broken", "not applicable"} {
		slices.Sort(a.got[verdict])
		for _, line := range a.got[verdict] {
			if testing.Verbose() || verdict != "not applicable" && !strings.HasSuffix(line, knownOpen) {
				fmt.Fprintf(w, "%s: %s: %s\n", a.title, verdict, line)
			}
		}
	}
	rest := ""
	if a.known > 0 {
		rest = fmt.Sprintf("; %d of them are known to be open", a.known)
	}
	if a.every > 1 {
		rest += fmt.Sprintf("; one case of %d and all that are open (TOOLD_CASES=all plays the others)", a.every)
	}
	fmt.Fprintf(w, "%s: %d blocked, %d escaped, %d usable, %d broken, %d not applicable%s%s\n", a.title, len(a.got["blocked"]),
		len(a.got["escaped"]), len(a.got["usable"]), len(a.got["broken"]), len(a.got["not applicable"]), because(a.inapt), rest)
}
