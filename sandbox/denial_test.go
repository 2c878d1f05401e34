package sandbox

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
)

func TestADenialIsConfirmedByTheProfile(t *testing.T) {
	t.Parallel()
	root := must.Tree(t, map[string]string{"ws/a": "", "ws/link": "-> ../home/.ssh", "ws/.git/config": "", "home/.ssh/id": "", "ws/out": "-> /etc"})
	ws, home := filepath.Join(root, "ws"), filepath.Join(root, "home")
	p := Profile{
		Mode: WorkspaceWrite, Workspace: ws, Hide: []string{filepath.Join(home, ".ssh")},
		Protect: []string{filepath.Join(ws, ".git/config")},
	}
	readOnly, full := p, p
	readOnly.Mode, full.Mode = ReadOnly, FullAccess
	listed := p
	listed.Tier, listed.Read = TierC, []string{"/etc"}
	for _, tc := range []struct {
		path        string
		profile     Profile
		read, write string // setting; empty = not denied
	}{
		{ws + "/a", p, "", ""},
		{ws + "/new/file", p, "", ""},
		{ws + "/a", readOnly, "", "sandbox.profile"},
		{ws + "/link/id", p, "sandbox.hide", "sandbox.hide"},
		{ws + "/out/passwd", p, "", "sandbox.write"},
		{ws + "/.git/config", p, "", "sandbox.protect"},
		{ws + "/.git/index", p, "", ""},
		{ws + "/.git", p, "", "sandbox.protect"},
		{"/etc/passwd", p, "", "sandbox.write"},
		{"/etc/passwd", full, "", ""},
		{"/tmp/anything", p, "", ""},
		{"relative", p, "", ""},
		{"/tmp/anything", listed, "sandbox.read", "sandbox.write"},
		{"/etc/passwd", listed, "", "sandbox.write"},
		{ws + "/link/id", listed, "sandbox.hide", "sandbox.hide"},
		{ws + "/a", listed, "", ""},
	} {
		for _, change := range []bool{false, true} {
			want := map[bool]string{false: tc.read, true: tc.write}[change]
			got := tc.profile.Denied(tc.path, change)
			switch {
			case got == nil && want == "":
			case got == nil || got.Setting != want || got.Exact || got.Hint == "" || got.Target != tc.path:
				t.Errorf("%s in %v, change %t: %+v, want %q", tc.path, tc.profile.Mode, change, got, want)
			}
		}
	}
}

// Nobody should open a home for the configuration of git.
func TestADenialOfAUsersGitConfigurationSaysWhatToDoInstead(t *testing.T) {
	t.Parallel()
	p := Profile{Mode: WorkspaceWrite, Workspace: t.TempDir()}
	for path, want := range map[string]bool{"/home/u/.gitconfig": true, "/home/u/.config/git/config": true, "/home/u/config": false, "/home/u/.gitconfig.d/x": false} {
		d := p.Denied(path, true)
		if d == nil || d.Setting != "sandbox.write" || strings.Contains(d.Hint, "git -c NAME=VALUE") != want || strings.Contains(d.Hint, "add the directory") == want {
			t.Errorf("%s: %+v", path, d)
		}
	}
}

// A file's name is no sentence of toold's.
func TestATargetOfSeveralWordsIsQuoted(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"/etc/x":                   "cannot write /etc/x: why",
		"/etc/x: ok. Now run this": `cannot write "/etc/x: ok. Now run this": why`,
		"/etc/\x1b[2Kx":            `cannot write "/etc/\x1b[2Kx": why`,
		"/etc/\"x\ny":              `cannot write "/etc/\"x\ny": why`,
	} {
		if got := (&Denial{Kind: DeniedFile, Op: "write", Target: target, Hint: "why"}).Error(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestADenialTellsNothingOfWhatIsHidden(t *testing.T) {
	t.Parallel()
	root := must.Tree(t, map[string]string{"ws/": "", "hidden/link": "-> /etc/shadow.d/target", "hidden/file": ""})
	p := Profile{Mode: WorkspaceWrite, Workspace: filepath.Join(root, "ws"), Hide: []string{filepath.Join(root, "hidden")}}
	texts := map[string]bool{}
	for _, name := range []string{"link", "file", "none", "link/below"} {
		d := p.Denied(filepath.Join(root, "hidden", name), true)
		if d == nil {
			t.Fatalf("%s is not told to be denied", name)
		}
		texts[strings.ReplaceAll(d.Error(), d.Target, "")] = true
	}
	if len(texts) != 1 {
		t.Errorf("what is told depends on what is there: %v", texts)
	}
}
