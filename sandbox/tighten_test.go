package sandbox

import "testing"

func TestANameOnlyTightensAProfile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		configured Mode
		name       string
		want       Mode
	}{
		{WorkspaceWrite, "", WorkspaceWrite},
		{WorkspaceWrite, "read-only", ReadOnly},
		{ReadOnly, "workspace-write", ReadOnly},
		{FullAccess, "workspace-write", WorkspaceWrite},
		{WorkspaceWrite, "danger-full-access", WorkspaceWrite},
		{FullAccess, "unheard-of", ReadOnly},
	} {
		if got := (Profile{Mode: c.configured}).AtMost(c.name).Mode; got != c.want {
			t.Errorf("%v tightened to %q: %v, want %v", c.configured, c.name, got, c.want)
		}
	}
}
