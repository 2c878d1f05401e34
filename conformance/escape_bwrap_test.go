//go:build linux

package conformance

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/toold/toold/conformance/suite/escape"
)

var attackedBwrap = attacks{title: "escape in tier A-bwrap"}

// TestEscapeCasesInTierBwrap plays them where bwrap makes the namespaces and the view.
// testdata/escape-open-tier-a-bwrap.json is what is open there.
func TestEscapeCasesInTierBwrap(t *testing.T) {
	t.Parallel()
	playEscapes(t, &attackedBwrap, "escape-open-tier-a-bwrap.json", sample(t), bwrapWorld(t), false)
}

// TestEscapeCasesThatLoadInTierBwrap plays those that take all that the machine has.
func TestEscapeCasesThatLoadInTierBwrap(t *testing.T) {
	playEscapes(t, &attackedBwrap, "escape-open-tier-a-bwrap.json", sample(t), bwrapWorld(t), true)
}

// bwrapWorld is a world with bwrap; without one the test is skipped.
func bwrapWorld(t *testing.T) escape.World {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "/usr/bin/bwrap", "--unshare-user", "--disable-userns", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc",
		"--size", "4096", "--tmpfs", "/tmp", "true").CombinedOutput()
	if err != nil {
		t.Skipf("tier A-bwrap needs bubblewrap 0.8 or later: %v: %s", err, out)
	}
	return escape.World{Bwrap: true}
}

// notInTierBwrap tells what of a case tier A-bwrap has nothing of, "" if nothing.
func notInTierBwrap(c escape.Case) string {
	switch kind, _, _ := strings.Cut(c.ID, "-"); {
	case kind == "eg" || c.ByName():
		return "there are no connections by name"
	case kind == "dg":
		return "the case is about another kernel"
	}
	return ""
}
