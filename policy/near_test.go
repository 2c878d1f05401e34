package policy

import (
	"testing"

	"github.com/toold/toold/shell/programs"
)

func TestAMisspeltProgramIsNearAKnownOne(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"gti": "git", "git": "", "npmm": "", "dockre": "docker", "dcker": "docker", "dockerr": "docker", "pytset": "pytest",
		"bat": "", "mytool": "", "": "", "x": "", "terrafrom": "terraform", "kubetcl": "kubectl",
	} {
		if got := programs.Find(name).Near(); got != want {
			t.Errorf("%q is near %q, want %q", name, got, want)
		}
	}
}
