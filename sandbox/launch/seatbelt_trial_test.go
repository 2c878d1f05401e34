//go:build unix

package launch

import (
	"strings"
	"testing"

	"github.com/toold/toold/sandbox"
)

// TestATrialFindsWhatDoesNotHold runs the trial under launchers that do not confine.
func TestATrialFindsWhatDoesNotHold(t *testing.T) {
	t.Parallel()
	for why, prefix := range map[string][]string{
		"write outside":          nil,
		"cannot write in its":    {"/bin/sh", "-c", `rm -rf "$(dirname "$0")"; exec "$@"`},
		"exit status 3: refused": {"/bin/sh", "-c", "echo refused; exit 3"},
		"no such file":           {"/no/launcher"},
	} {
		err := trial(t.Context(), func(p sandbox.Profile, _ string) ([]string, error) {
			if strings.HasPrefix(why, "cannot write") {
				return append(prefix, p.Workspace+"/x"), nil
			}
			return prefix, nil
		})
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: got %v", why, err)
		}
	}
}
