//go:build linux

package conformance

import (
	"strings"
	"testing"
)

// TestFewBenignCommandsAreOpaque measures how many of the benign commands cannot
// be known before they run: each of them is a question that no rule can spare.
func TestFewBenignCommandsAreOpaque(t *testing.T) {
	t.Parallel()
	runner := startPolicyRunner(t)
	cases, err := readPolicyCases(runner.fixtureDirs, namedFiles("TOOLD_CASES_POLICY", "policy.jsonl")...)
	if err != nil {
		t.Fatal(err)
	}
	commands, opaque := 0, 0
	for _, l := range cases {
		if l.err != nil || l.c.Tool != "bash" || l.c.Kind != "benign" {
			continue
		}
		commands++
		d, _ := runner.run(t.Context(), l)
		for _, e := range d.Effects {
			if e.Kind == "opaque" {
				opaque++
				t.Logf("%s: %q: %s", l.c.ID, l.c.Arguments["command"], strings.TrimSpace(e.Text))
				break
			}
		}
	}
	t.Logf("%d of %d benign commands are Opaque", opaque, commands)
	if opaque*100 > commands {
		t.Errorf("%d of %d benign commands are Opaque, want at most one in a hundred", opaque, commands)
	}
}
