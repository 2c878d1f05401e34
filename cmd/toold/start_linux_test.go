package main

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The helper imports golang.org/x/sys/unix and takes over right after it. An import of the helper that is initialised
// later, as path/filepath and net/netip are, makes each start wait for half of the program: whatever is ready before
// and has a lesser path is initialised first.
func TestTheHelperNeedsOnlyWhatIsInitialisedEarly(t *testing.T) {
	t.Parallel()
	c := exec.CommandContext(t.Context(), "/proc/self/exe", "toold-sandbox-helper")
	c.Env = []string{"GODEBUG=inittrace=1"}
	out, _ := c.CombinedOutput()
	var before []string
	for _, m := range regexp.MustCompile(`(?m)^init (\S+) @`).FindAllStringSubmatch(string(out), -1) {
		before = append(before, m[1])
	}
	unix := slices.Index(before, "golang.org/x/sys/unix")
	if unix < 0 || !strings.Contains(string(out), "toold itself") {
		t.Fatalf("the helper did not take over as expected: %s", out)
	}
	for _, path := range before[unix+1:] {
		if !strings.HasPrefix(path, "github.com/toold/") {
			t.Errorf("%s is initialised before the helper takes over (the %d packages before: %q)", path, len(before), before)
		}
	}
}
