package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/toold/toold/internal/must"
)

func TestALimitOnlyTakes(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(dir, ".git"), 0o755))
	part, outside := filepath.Join(dir, "part"), filepath.Dir(dir)
	p := Profile{Mode: WorkspaceWrite, Workspace: dir, Write: []string{"/opt/a"}, Network: true, Ports: []uint16{443}}
	full := Profile{Mode: FullAccess, Workspace: dir}
	for name, test := range map[string]struct {
		profile Profile
		limit   Limit
		mode    Mode
		write   []string
	}{
		"none":               {p, Limit{}, WorkspaceWrite, []string{dir, "/opt/a"}},
		"the same":           {p, Limit{Write: []string{dir}}, WorkspaceWrite, []string{dir}},
		"a part":             {p, Limit{Write: []string{part}}, WorkspaceWrite, []string{part}},
		"more":               {p, Limit{Write: []string{outside, "/"}}, WorkspaceWrite, []string{dir, "/opt/a"}},
		"something else":     {p, Limit{Write: []string{"/srv/x"}}, ReadOnly, nil},
		"read-only":          {p, Limit{Mode: "read-only"}, ReadOnly, nil},
		"an unknown mode":    {p, Limit{Mode: "novel"}, ReadOnly, nil},
		"of full access":     {full, Limit{Write: []string{part}}, WorkspaceWrite, []string{part}},
		"a full one offline": {full, Limit{Offline: true}, WorkspaceWrite, []string{dir}},
		"a mode of a full":   {full, Limit{Mode: "workspace-write"}, WorkspaceWrite, []string{dir}},
	} {
		got := test.profile.Within(test.limit)
		if write := append([]string{got.Workspace}, got.Write...); got.Mode != test.mode || test.write != nil && !slices.Equal(write, test.write) {
			t.Errorf("%s: it may write %v in mode %s, want %v in %s", name, write, got.Mode, test.write, test.mode)
		}
	}
	git := filepath.Join(dir, ".git")
	got := p.Within(Limit{ReadOnly: []string{git, filepath.Join(dir, "none"), "/usr"}, Hide: []string{"/srv/h"}, Offline: true})
	if got.Network || got.Ports != nil || !slices.Equal(got.Protect, []string{git}) || !slices.Contains(got.Hide, "/srv/h") {
		t.Errorf("within the limit it is %+v", got)
	}
}

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
