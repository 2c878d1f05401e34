package protect

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
)

// latest is the number of the latest watch. Each has the next number, so that it
// counts how often directories were taken for new ones.
func latest(g *Watcher) int32 { return slices.Max(slices.Collect(maps.Keys(g.tree.watch))) }

// queued is how many events the kernel keeps for a program that does not read them.
func queued(t *testing.T) int {
	t.Helper()
	text := must.Get(os.ReadFile("/proc/sys/fs/inotify/max_queued_events"))(t)
	n := must.Get(strconv.Atoi(strings.TrimSpace(string(text))))(t)
	return n
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	must.Do(t, os.Rename(from, to))
}

// seesHook reports whether a Watcher removes a hook from a repository that a call makes.
func seesHook(c *Call, dir string, t *testing.T) bool {
	t.Helper()
	hook := dir + "/.git/hooks/pre-commit"
	put(t, hook)
	for _, i := range c.End() {
		if i.Path == hook {
			return true
		}
	}
	return false
}

// watchHooks watches a project for git hooks.
func watchHooks(t *testing.T) (g *Watcher, ws string) {
	t.Helper()
	_, ws = project(t)
	g = must.Get(New(Options{Roots: []string{ws}, Names: []string{".git/hooks"}, Quarantine: t.TempDir()}))(t)
	t.Cleanup(g.Close)
	return g, ws
}

func TestADirectoryThatIsRenamedWithoutEndIsReadOnce(t *testing.T) {
	t.Parallel()
	g, ws := watchHooks(t)
	put(t, ws+"/d/file")
	if err := os.Symlink("mine", ws+"/link"); err != nil {
		t.Fatal(err)
	}
	c := started(t, g)
	g.mu.Lock() // the events wait
	before := latest(g)
	for range 1001 {
		if err := unix.Renameat2(unix.AT_FDCWD, ws+"/d", unix.AT_FDCWD, ws+"/link", unix.RENAME_EXCHANGE); err != nil {
			g.mu.Unlock()
			t.Skip("this file system exchanges no names: " + err.Error())
		}
	}
	g.pump(1 << 20)
	after := latest(g)
	g.mu.Unlock()
	if after > before+2 {
		t.Errorf("after 1001 renames there were %d watches more", after-before)
	}
	if !seesHook(c, ws+"/link", t) {
		t.Error("the directory is not watched any more")
	}
}

func TestADirectoryThatIsMovedIntoANewOneStaysWatched(t *testing.T) {
	t.Parallel()
	g, ws := watchHooks(t)
	put(t, ws+"/d/sub/file")
	c := started(t, g)
	g.mu.Lock() // the new directory is met when the other is in it already
	put(t, ws+"/new/file")
	rename(t, ws+"/d", ws+"/new/d")
	g.pump(1 << 20)
	g.mu.Unlock()
	if !seesHook(c, ws+"/new/d/sub", t) {
		t.Error("the directory is not watched any more")
	}
}

func TestADirectoryThatIsReplacedWhileEventsAreLostIsWatched(t *testing.T) {
	t.Parallel()
	g, ws := watchHooks(t)
	put(t, ws+"/d/sub/file")
	put(t, ws+"/p")
	c := started(t, g)
	g.mu.Lock() // the queue runs over
	for range queued(t)/4 + 1 {
		rename(t, ws+"/p", ws+"/q")
		rename(t, ws+"/q", ws+"/p")
	}
	rename(t, ws+"/d", ws+"/e")
	put(t, ws+"/d/sub/file")
	g.pump(1 << 20)
	g.mu.Unlock()
	if !seesHook(c, ws+"/d/sub", t) {
		t.Error("the new directory is not watched")
	}
}

// observerOf is an Observer of one path.
type observerOf struct {
	path    string
	changed int
}

func (s *observerOf) Listed(string, []fs.DirEntry, bool) bool { return false }
func (s *observerOf) Wants(path string, _ bool) bool          { return path == s.path }
func (s *observerOf) Changed(string)                          { s.changed++ }
func (s *observerOf) Moved(string, string) (more bool)        { return false }

// observerOfAll is an Observer to which everything matters. It counts how often each directory is listed.
type observerOfAll struct {
	mu     sync.Mutex
	listed map[string]int
}

func (s *observerOfAll) Listed(dir string, _ []fs.DirEntry, _ bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed[filepath.Base(dir)]++
	s.listed[dir]++
	return true
}
func (s *observerOfAll) Wants(string, bool) bool          { return true }
func (s *observerOfAll) Changed(string)                   {}
func (s *observerOfAll) Moved(string, string) (more bool) { return true }

// Other calls wait for one listing of a tree that a call renames without end.
func TestATreeThatIsRenamedWithoutEndIsListedOnce(t *testing.T) {
	t.Parallel()
	_, ws := project(t)
	put(t, ws+"/a/sub/file")
	observer := &observerOfAll{listed: map[string]int{}}
	g := must.Get(New(Options{Roots: []string{ws}, Names: []string{".git/hooks"}, Quarantine: t.TempDir(), Observer: observer}))(t)
	t.Cleanup(g.Close)
	defer started(t, g).End()
	g.mu.Lock() // others wait
	before := observer.listed["sub"]
	for range 100 {
		rename(t, ws+"/a", ws+"/b")
		g.pump(1) // keeps the lock
		rename(t, ws+"/b", ws+"/a")
		g.pump(1)
	}
	rename(t, ws+"/a", ws+"/c")
	rename(t, ws+"/c/sub", ws+"/c/last")
	g.mu.Unlock()
	must.Do(t, g.Sync(t.Context()))
	observer.mu.Lock()
	defer observer.mu.Unlock()
	if n := observer.listed["sub"] + observer.listed["last"] - before; n > 10 || observer.listed[ws+"/c/last"] == 0 {
		t.Errorf("the directory in it was listed %d times, at its last path %d times", n, observer.listed[ws+"/c/last"])
	}
}

// However much other calls change, what happened before is shown before the next one begins.
func TestAFileThatWasSavedIsSeenBehindAFloodOfChanges(t *testing.T) {
	t.Parallel()
	_, ws := project(t)
	observer := &observerOf{path: ws + "/sub/.env"}
	put(t, observer.path)
	put(t, ws+"/sub/swap")
	put(t, ws+"/flood/0")
	g := must.Get(New(Options{Roots: []string{ws}, Names: []string{".git/hooks"}, Quarantine: t.TempDir(), Observer: observer}))(t)
	t.Cleanup(g.Close)
	defer started(t, g).End()
	g.mu.Lock() // the events wait
	seen := observer.changed
	for i := range min(queued(t)/2, 3*mostPending) {
		rename(t, fmt.Sprintf("%s/flood/%d", ws, i), fmt.Sprintf("%s/flood/%d", ws, i+1))
	}
	rename(t, ws+"/sub/swap", observer.path)
	g.mu.Unlock()
	if err := g.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if observer.changed == seen {
		t.Error("the saved file was not seen")
	}
}

// What a protected name leads to may be looked for at any time: also between the making of
// a file there and its event.
func TestWhatALinkLeadsToIsFoundWheneverItIsLookedFor(t *testing.T) {
	t.Parallel()
	ws := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	for link, target := range map[string]string{"/.envrc": "cfg/envrc", "/.npmrc": "rc", "/rc": "made"} {
		must.Do(t, os.Symlink(target, ws+link))
	}
	g := must.Get(New(Options{Roots: []string{ws}, Names: []string{".envrc", ".npmrc"}, Quarantine: t.TempDir()}))(t)
	t.Cleanup(g.Close)
	c := started(t, g)
	g.mu.Lock() // the events wait
	if err := os.Mkdir(ws+"/cfg", 0o755); err != nil {
		t.Error(err)
	}
	g.pump(1 << 20)
	put(t, ws+"/cfg/envrc")
	if err := os.Remove(ws + "/rc"); err != nil {
		t.Error(err)
	}
	put(t, ws+"/rc")
	g.existing = nil
	g.look()
	g.mu.Unlock()
	if got, want := paths(c.End(), ws), "cfg/envrc rc"; got != want {
		t.Errorf("found %q, want %q", got, want)
	}
}
