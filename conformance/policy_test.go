//go:build linux

package conformance

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"
)

// decided counts the policy cases of this run of the test binary.
var decided policyTally

// TestPolicyCases asks the daemon how it would decide the calls of the case
// files. Nothing of them runs.
func TestPolicyCases(t *testing.T) {
	t.Parallel()
	runner := startPolicyRunner(t)
	cases, err := readPolicyCases(runner.fixtureDirs, namedFiles("TOOLD_CASES_POLICY", "policy.jsonl")...)
	if err != nil {
		t.Fatal(err)
	}
	decided.begin(len(cases))
	for _, l := range cases {
		t.Run(l.c.ID, func(t *testing.T) {
			d, why := runner.run(t.Context(), l)
			decided.count(l.c, d, why)
			if why != "" {
				t.Error(why)
			}
		})
	}
}

// TestPolicyRunnerFailsFalseCases plays cases that expect the wrong decision. A
// runner that passes one of them would pass anything.
func TestPolicyRunnerFailsFalseCases(t *testing.T) {
	t.Parallel()
	runner := startPolicyRunner(t)
	runner.policies = filepath.Join("testdata", "policies")
	cases, err := readPolicyCases(runner.fixtureDirs, filepath.Join("testdata", "policy-false.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatal("there is no false case")
	}
	for _, l := range cases {
		t.Run(l.c.ID, func(t *testing.T) {
			if _, why := runner.run(t.Context(), l); why == "" || !regexp.MustCompile(l.c.MustFail).MatchString(why) {
				t.Errorf("the case failed with %q, want %q", why, l.c.MustFail)
			}
		})
	}
}

// startPolicyRunner opens a runner whose daemons end with the test.
func startPolicyRunner(t *testing.T) *policyRunner {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("the cases need git to build the repositories that they are about")
	}
	program, err := underTest.pathOf(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	folder := os.Getenv("TOOLD_CASES_POLICIES")
	if folder == "" {
		folder = filepath.Join("testdata", "policies")
	}
	c, err := newPolicyRunner(t.Context(), program, t.TempDir(), filepath.Join("testdata", "policy-fixture.json"), fromRoot(folder))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// policyTally counts the decisions.
type policyTally struct {
	mu         sync.Mutex
	expected   int
	passed     int
	categories map[string]*[2]int // passed and failed
	allowed    []string           // attacks that would run
	failed     []string
}

func (r *policyTally) begin(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expected += n
}

// count adds the decision of a case; why tells how it failed, "" if it passed.
func (r *policyTally) count(c policyCase, d explanation, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.categories == nil {
		r.categories = map[string]*[2]int{}
	}
	n := r.categories[c.Category]
	if n == nil {
		n = new([2]int)
		r.categories[c.Category] = n
	}
	switch {
	case why == "":
		r.passed++
		n[0]++
		return
	case c.Kind == "attack" && d.Action == "allow":
		r.allowed = append(r.allowed, c.ID+": "+why)
	default:
		r.failed = append(r.failed, c.ID+": "+why)
	}
	n[1]++
}

// print names what failed, the worst first, then counts: with -v for each category.
func (r *policyTally) print(w io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.expected == 0 {
		return
	}
	for _, text := range r.allowed {
		fmt.Fprintln(w, "policy: ALLOWED:", text)
	}
	for _, text := range r.failed {
		fmt.Fprintln(w, "policy: failed:", text)
	}
	for _, name := range slices.Sorted(maps.Keys(r.categories)) {
		if !testing.Verbose() {
			break
		}
		fmt.Fprintf(w, "policy: %s: %d passed, %d failed\n", name, r.categories[name][0], r.categories[name][1])
	}
	fmt.Fprintf(w, "policy: %d passed, %d failed\n", r.passed, len(r.allowed)+len(r.failed))
}
