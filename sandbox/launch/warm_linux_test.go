package launch

import (
	"os"
	"testing"
	"time"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
)

// What a look has found is believed for a moment only.
func TestTheWorldIsLookedAtAgainWhenTheLookIsOld(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := newWarmShell(Command{Argv: []string{"/bin/bash"}, Dir: dir, Profile: sandbox.Profile{Hide: []string{dir + "/key"}}})
	defer b.close()
	if b.compare(); !b.unchanged() {
		t.Skip("somebody mounts all the time here")
	}
	must.Do(t, os.WriteFile(dir+"/key", nil, 0o600))
	b.compared = b.compared.Add(-time.Minute)
	if b.unchanged() {
		t.Error("a hidden file that has come was not seen")
	}
}
