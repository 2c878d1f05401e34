//go:build linux

package conformance

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/workspaces"
)

// places is a workspace with links to another one, to a directory that calls may write, and to one that is neither.
type places struct {
	first, second, open, none string
	send                      func(tool string, args map[string]any) string
}

func newPlaces(t *testing.T) places {
	t.Helper()
	base := t.TempDir()
	p := places{second: filepath.Join(base, "second"), open: filepath.Join(base, "open"), none: filepath.Join(base, "none")}
	if err := os.Mkdir(p.open, 0o755); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, map[string]any{"sandbox": map[string]any{"write": []string{p.open}}})
	p.first = r.site.workspace
	errs := []error{}
	for _, dir := range []string{p.second, p.open, p.none, p.first + "/sub"} {
		errs = append(errs, os.MkdirAll(dir, 0o755), os.WriteFile(dir+"/x", []byte("in "+filepath.Base(dir)), 0o644))
	}
	for name, target := range map[string]string{"to-second": p.second, "to-open": p.open, "to-none": p.none, "to-sub": "sub", "out-and-back": "../ws/sub"} {
		errs = append(errs, os.Symlink(target, filepath.Join(p.first, name)))
	}
	_, err := workspaces.In(r.site.state).Add(t.Context(), p.second)
	if err := errors.Join(append(errs, err)...); err != nil {
		t.Fatal(err)
	}
	c := r.dial(client.Options{})
	p.send = func(tool string, args map[string]any) string {
		ret, err := c.Call(t.Context(), client.Call{Tool: tool, Arguments: args}, client.Events{})
		if err != nil {
			t.Error(err)
		}
		return strings.TrimSpace(ret.Result)
	}
	return p
}

func (p places) relative(t *testing.T, dir string) string {
	t.Helper()
	path, err := filepath.Rel(p.first, dir)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestARelativePathDoesNotLeadIntoAnotherWorkspace(t *testing.T) {
	t.Parallel()
	p := newPlaces(t)
	elsewhere := func(path string) string { return "send the absolute path " + path }
	for _, step := range []struct{ cwd, want string }{
		{p.relative(t, p.second), elsewhere(p.second)},
		{"to-second", elsewhere(p.second)},
		{"sub/../to-second", elsewhere(p.second)},
		{p.second, "pwd=" + p.second},

		{p.relative(t, p.none), "toold workspaces add " + p.none},
		{"to-none", "toold workspaces add " + p.none},
		{"to-second/../none", "toold workspaces add " + p.none}, // as the kernel reads it
		{p.none, "toold workspaces add " + p.none},

		{p.relative(t, p.open), "pwd=" + p.open},
		{"to-open", "pwd=" + p.open},
		{p.relative(t, "/tmp"), "pwd=/tmp"},
		{".", "pwd=" + p.first},
		{"to-sub", "pwd=" + p.first + "/sub"},
		{"out-and-back", "pwd=" + p.first + "/sub"},
		{"../ws/sub", "pwd=" + p.first + "/sub"},
	} {
		if got := p.send("bash", map[string]any{"command": "echo pwd=$PWD", "cwd": step.cwd, "terminal": "off"}); !strings.Contains(got, step.want) {
			t.Errorf("cwd %q: %q, want %q", step.cwd, got, step.want)
		}
	}
	for _, step := range []struct{ path, want string }{
		{p.relative(t, p.second) + "/x", elsewhere(p.second + "/x")},
		{"to-second/x", elsewhere(p.second + "/x")},
		{p.second + "/x", "in second"},
		{"to-none/x", p.send("read_file", map[string]any{"file_path": p.none + "/x"})}, // the policy and the sandbox decide
		{"to-open/x", "in open"},
		{"to-sub/x", "in sub"},
	} {
		if got := p.send("read_file", map[string]any{"file_path": step.path}); !strings.Contains(got, step.want) {
			t.Errorf("%q: %q, want %q", step.path, got, step.want)
		}
	}
	if got := p.send("grep", map[string]any{"pattern": "in", "path": "to-second"}); !strings.Contains(got, elsewhere(p.second)) {
		t.Errorf("grep: %q", got)
	}
}

func TestThePatchOfACallIsOfOneWorkspace(t *testing.T) {
	t.Parallel()
	p := newPlaces(t)
	add := func(path string) string { return "*** Add File: " + path + "\n+x\n" }
	move := func(from, to string) string { return "*** Update File: " + from + "\n*** Move to: " + to + "\n" }
	for _, step := range []struct{ patch, want string }{
		{add("sub/1") + add("to-second/1"), "absolute path " + p.second + "/1 "},
		{add("sub/1") + add(p.second+"/1"), "absolute path " + p.second + "/1 "},
		{add(p.second+"/1") + add(p.first+"/sub/1"), "absolute path " + p.first + "/sub/1 "},
		{move("sub/x", "to-second/1"), "absolute path " + p.second + "/1 "},
		{add("sub/1") + add("to-open/1"), "2 files"},
		{add(p.second+"/1") + add(p.second+"/2"), "2 files"},
		{move("sub/x", "sub/y"), "1 file"},
	} {
		if got := p.send("apply_patch", map[string]any{"input": "*** Begin Patch\n" + step.patch + "*** End Patch"}); !strings.Contains(got, step.want) {
			t.Errorf("%s: %q, want %q", step.patch, got, step.want)
		}
	}
}
