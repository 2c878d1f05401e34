package workspaces_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/internal/workspaces"
)

func paths(t *testing.T, r workspaces.Registry) []string {
	t.Helper()
	list := must.Get(r.List())(t)
	return workspaces.Paths(list)
}

func TestARegistryListsWhatWasAddedAndNotRemoved(t *testing.T) {
	t.Parallel()
	r := workspaces.In(filepath.Join(t.TempDir(), "state"))
	if got := paths(t, r); len(got) != 0 {
		t.Errorf("a fresh registry lists %v", got)
	}
	for _, step := range []struct {
		add, remove string
		changes     bool
		want        []string
	}{
		{"/src/b", "", true, []string{"/src/b"}},
		{"/src/a", "", true, []string{"/src/a", "/src/b"}},
		{"/src/a", "", false, []string{"/src/a", "/src/b"}},
		{"", "/src/c", false, []string{"/src/a", "/src/b"}},
		{"", "/src/b", true, []string{"/src/a"}},
		{"", "/src/a", true, []string{}},
	} {
		change, path := r.Add, step.add
		if path == "" {
			change, path = r.Remove, step.remove
		}
		changed, err := change(t.Context(), path)
		if err != nil || changed != step.changes {
			t.Errorf("%+v: %t, %v", step, changed, err)
		}
		if diff := cmp.Diff(step.want, paths(t, r)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", step, diff)
		}
	}
}

func TestOnlyAnAbsolutePathIsAWorkspace(t *testing.T) {
	t.Parallel()
	r := workspaces.In(t.TempDir())
	for _, path := range []string{"", "src"} {
		if added, err := r.Add(t.Context(), path); added || err == nil {
			t.Errorf("%q was added", path)
		}
	}
	if got := paths(t, r); len(got) != 0 {
		t.Errorf("the registry lists %v", got)
	}
}

func TestNoWorkspaceLiesInAnother(t *testing.T) {
	t.Parallel()
	r := workspaces.In(t.TempDir())
	must.Get(r.Add(t.Context(), "/src/app"))(t)
	for _, path := range []string{"/src", "/src/app/sub"} {
		var nested *workspaces.NestedError
		if _, err := r.Add(t.Context(), path); !errors.As(err, &nested) || !strings.Contains(err.Error(), "toold workspaces remove /src/app") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := r.Add(t.Context(), "/src/app2"); err != nil {
		t.Errorf("a name that begins like another's: %v", err)
	}
}

func TestWorkspacesAddedAtOnceAreAllKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var adding sync.WaitGroup
	for i := range 20 {
		adding.Go(func() {
			if _, err := workspaces.In(dir).Add(t.Context(), fmt.Sprintf("/src/%d", i)); err != nil {
				t.Error(err)
			}
		})
	}
	adding.Wait()
	if got := paths(t, workspaces.In(dir)); len(got) != 20 {
		t.Errorf("kept %v", got)
	}
	left, err := filepath.Glob(filepath.Join(dir, "workspaces.json.*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind %v, %v", left, err)
	}
}

func TestARegistryThatCannotBeReadIsNoEmptyOne(t *testing.T) {
	t.Parallel()
	for text, why := range map[string]string{
		"":                                  "toold workspaces add PATH",
		`{"version":1,"workspaces":[{"path`: "toold workspaces add PATH",
		`{"version":2,"workspaces":[]}`:     "version 2",
		`{"version":1,"workspaces":[{"path":"/"}]}`:     `"/" is not`,
		`{"version":1,"workspaces":[{"path":"src"}]}`:   `"src" is not`,
		`{"version":1,"workspaces":[{"path":"/a/.."}]}`: `"/a/.." is not`,
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "workspaces.json")
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
		if _, err := workspaces.In(dir).Add(t.Context(), "/src"); err == nil || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), file) {
			t.Errorf("%q: %v", text, err)
		}
		if kept, err := os.ReadFile(file); err != nil || string(kept) != text {
			t.Errorf("%q became %q, %v", text, kept, err)
		}
	}
}

func TestAWorkspaceIsDiscovered(t *testing.T) {
	t.Parallel()
	root := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	for _, dir := range []string{"home/.git", "home/app/.git", "home/app/sub/deep", "home/plain/sub", "home/mono/.git", "home/mono/part/sub", "home/mono/other", "tree"} {
		must.Do(t, os.MkdirAll(filepath.Join(root, dir), 0o700))
	}
	must.Do(t, os.WriteFile(filepath.Join(root, "tree/.git"), []byte("gitdir: elsewhere\n"), 0o600))
	registered := []string{root + "/home/mono/part"}
	for dir, want := range map[string]string{
		"home/app/sub/deep":  "home/app",
		"home/app":           "home/app",
		"home/plain/sub":     "home/plain/sub", // not the home, though it is a repository
		"home":               "home",
		"home/mono/part/sub": "home/mono/part",
		"home/mono/other":    "home/mono/other", // its repository contains a workspace
		"tree":               "tree",
	} {
		if got := workspaces.Discover(registered, filepath.Join(root, dir), root+"/home"); got != filepath.Join(root, want) {
			t.Errorf("%s: %s, want %s", dir, got, want)
		}
	}
}
