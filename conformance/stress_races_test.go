//go:build linux

package conformance

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/toold/toold/conformance/suite/escape"
)

// TestStressConnectsThatChangeWhileTheyAreJudged lets a program connect to a socket of
// its own again and again, while another thread of it changes what it connects to: to
// a socket of the machine, which must hear nothing.
func TestStressConnectsThatChangeWhileTheyAreJudged(t *testing.T) {
	tries := amount(t, "TOOLD_STRESS_RACES", 1000)
	job := escape.World{Programs: escapePrograms(t)}
	for mode, what := range []string{"the address", "a link", "the descriptor", "a folder", "nothing, but another thread writes"} {
		t.Run(what, func(t *testing.T) {
			bad := "@HOME@/.app/ipc.sock"
			job.Case = escape.Case{
				ID: fmt.Sprintf("race-%d", mode), Profile: "workspace-write", Setup: "cp @RACER@ @WS@/",
				Command:       fmt.Sprintf("cd @WS@ && timeout 250 ./racer %d @WS@/g.sock %s 0 %d", mode, bad, tries),
				MustNotHappen: "grep -q 'RACEHIT\\|unix:.*ipc.sock' @LOG@", MustHappen: "grep -q 'mode' $SBOUT",
			}
			got := playCase(t, job)
			if got.Verdict != "blocked" {
				t.Fatalf("%s: %s\n%s", got.Verdict, got.Why, got.Output)
			}
			m := regexp.MustCompile(`(\d+) tries, (\d+) connected`).FindStringSubmatch(got.Output)
			if m == nil {
				t.Fatalf("it told %q", got.Output)
			}
			made, _ := strconv.Atoi(m[1])
			if connected, _ := strconv.Atoi(m[2]); made < tries || connected == 0 && !strings.HasPrefix(what, "nothing") {
				t.Errorf("%s tells nothing: want %d tries, and some to go well", m[0], tries)
			}
			t.Log(m[0])
		})
	}
}
