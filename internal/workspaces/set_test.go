package workspaces_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/internal/workspaces"
)

// bench is a set whose workspaces are their own names.
type bench struct {
	*workspaces.Set[string]
	registry workspaces.Registry
	root     string
	fail     error

	mu             sync.Mutex
	opened, closed []string
}

func newBench(t *testing.T, names ...string) *bench {
	t.Helper()
	root := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	b := &bench{registry: workspaces.In(t.TempDir()), root: root}
	for _, name := range names {
		b.add(t, name)
	}
	b.Set = workspaces.NewSet(workspaces.SetOptions[string]{
		Registry: b.registry, Home: filepath.Join(root, names[0]),
		Open: func(_ context.Context, root string) (string, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.opened = append(b.opened, filepath.Base(root))
			return filepath.Base(root), b.fail
		},
		Close: func(name string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.closed = append(b.closed, name)
		},
	})
	t.Cleanup(b.Set.Close)
	return b
}

func (b *bench) add(t *testing.T, name string) {
	t.Helper()
	path := filepath.Join(b.root, name)
	must.Do(t, os.MkdirAll(path, 0o700))
	must.Get(b.registry.Add(t.Context(), path))(t)
}

func (b *bench) remove(t *testing.T, name string) {
	t.Helper()
	if removed, err := b.registry.Remove(t.Context(), filepath.Join(b.root, name)); err != nil || !removed {
		t.Fatal(removed, err)
	}
}

// use uses the workspace of a directory.
func (b *bench) use(t *testing.T, dir string) (string, func()) {
	t.Helper()
	if dir != "" {
		dir = filepath.Join(b.root, dir)
	}
	name, release, err := b.Use(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return name, release
}

func TestADirectorySelectsItsWorkspace(t *testing.T) {
	t.Parallel()
	b := newBench(t, "home", "a", "ab")
	for dir, want := range map[string]string{"": "home", "a": "a", "a/x/y": "a", "ab/x": "ab", "home/x": "home"} {
		name, release := b.use(t, dir)
		if release(); name != want {
			t.Errorf("%q: %s, want %s", dir, name, want)
		}
	}
	if slices.Sort(b.opened); !slices.Equal(b.opened, []string{"a", "ab", "home"}) {
		t.Errorf("opened %v", b.opened)
	}
	for _, dir := range []string{b.root, filepath.Join(b.root, "abc"), "/"} {
		var unregistered *workspaces.UnregisteredError
		if _, _, err := b.Use(t.Context(), dir); !errors.As(err, &unregistered) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

func TestARegistrationHoldsFromTheNextCallOn(t *testing.T) {
	t.Parallel()
	b := newBench(t, "home")
	if _, err := b.Root(filepath.Join(b.root, "new")); err == nil {
		t.Fatal("it is registered already")
	}
	b.add(t, "new")
	if name, release := b.use(t, "new"); name != "new" {
		t.Errorf("got %s", name)
	} else {
		release()
	}
}

func TestARemovedWorkspaceIsClosedWhenItsLastCallEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t, "home", "a")
	_, first := b.use(t, "a")
	_, second := b.use(t, "a")
	b.remove(t, "a")
	if _, _, err := b.Use(t.Context(), filepath.Join(b.root, "a")); err == nil {
		t.Error("it was used after it was removed")
	}
	if first(); len(b.closed) > 0 {
		t.Errorf("closed %v under a call", b.closed)
	}
	first() // twice is once
	b.add(t, "a")
	if _, third := b.use(t, "a"); len(b.opened) != 2 {
		t.Errorf("opened %v: what was removed came back", b.opened)
	} else {
		third()
	}
	second()
	b.Set.Close()
	if !slices.Equal(b.closed, []string{"a", "a"}) {
		t.Errorf("closed %v", b.closed)
	}
}

func TestHomeIsServedAsLongAsItIsRegistered(t *testing.T) {
	t.Parallel()
	b := newBench(t, "home", "a")
	_, release := b.use(t, "")
	release()
	b.remove(t, "home")
	if _, _, err := b.Use(t.Context(), ""); err == nil {
		t.Error("the home was used after it was removed")
	}
	_, release = b.use(t, "a")
	release()
}

func TestAWorkspaceThatCannotBeOpenedIsTriedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, "home")
	b.fail = errors.New("no watches left")
	if _, _, err := b.Use(t.Context(), ""); !errors.Is(err, b.fail) {
		t.Errorf("%v", err)
	}
	b.fail = nil
	_, release := b.use(t, "")
	release()
	if len(b.opened) != 2 || len(b.closed) != 0 {
		t.Errorf("opened %v, closed %v", b.opened, b.closed)
	}
}

func TestADirectoryThatTookThePlaceOfAnotherIsOpenedAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t, "home")
	_, release := b.use(t, "")
	old := filepath.Join(b.root, "home")
	must.Do(t, errors.Join(os.Rename(old, old+"-before"), os.Mkdir(old, 0o700)))
	_, again := b.use(t, "")
	if len(b.opened) != 2 {
		t.Errorf("opened %v", b.opened)
	}
	release()
	again()
	must.Do(t, os.RemoveAll(old))
	if _, _, err := b.Use(t.Context(), ""); err == nil {
		t.Error("a directory that is gone was used")
	}
}

func TestWorkspacesAreUsedSideBySide(t *testing.T) {
	t.Parallel()
	b := newBench(t, "home", "a", "b")
	var using sync.WaitGroup
	for i := range 60 {
		using.Go(func() {
			name := []string{"home", "a", "b"}[i%3]
			got, release, err := b.Use(t.Context(), filepath.Join(b.root, name))
			if err != nil || got != name {
				t.Errorf("%s: %s, %v", name, got, err)
				return
			}
			if err := b.Each(func(string, string) error { return nil }); err != nil {
				t.Error(err)
			}
			release()
		})
	}
	using.Wait()
	if len(b.opened) != 3 || len(b.closed) != 0 {
		t.Errorf("opened %v, closed %v", b.opened, b.closed)
	}
}

// A model chooses the directory, and its user copies the command.
func TestTheCommandThatRegistersADirectoryCanBeCopied(t *testing.T) {
	t.Parallel()
	for dir, want := range map[string]string{"/a": "toold workspaces add /a", "/a; id": "toold workspaces add '/a; id'", "/a\nid": `toold workspaces add $'/a\012id'`} {
		if err := (&workspaces.UnregisteredError{Dir: dir}).Error(); !strings.HasSuffix(err, want) {
			t.Errorf("%q: %s", dir, err)
		}
	}
}
