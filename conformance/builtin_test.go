//go:build linux

package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheBuiltInPolicyAsksWhatItMust judges the scripts of testdata/builtin.txt.
func TestTheBuiltInPolicyAsksWhatItMust(t *testing.T) {
	t.Parallel()
	runner := startPolicyRunner(t)
	runner.policies = filepath.Join("..", "internal", "config")
	text, err := os.ReadFile("testdata/builtin.txt")
	if err != nil {
		t.Fatal(err)
	}
	section := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		want, script, _ := strings.Cut(line, " ")
		switch want {
		case "", "#":
			continue
		case "==":
			section = script
			continue
		}
		script = strings.ReplaceAll(script, `\n`, "\n")
		d, why := runner.run(t.Context(), bashCase(fmt.Sprintf("%q", script), section, "careful", script))
		if d.Action == "" {
			t.Fatalf("%s: %s", script, why)
		}
		if d.Action != want {
			t.Errorf("%s: %s by %s, want %s: %s: %s", section, d.Action, d.Rule, want, script, d.Reason)
		}
	}
}
