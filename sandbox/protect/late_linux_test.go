package protect

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox/internal/nofollow"
)

// scarce is a watcher that can watch one directory, and look through none before a call
// returns. held keeps it from doing so later.
func scarce(t *testing.T, dir string, held bool) *Watcher {
	t.Helper()
	g := must.Get(newWatcher(Options{
		Roots: []string{filepath.Join(dir, "ws")}, Names: []string{".git", ".git/hooks", ".git/config", ".envrc"},
		Quarantine: filepath.Join(dir, "quarantine"), Watches: 1,
	}, 0))(t)
	t.Cleanup(g.Close)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sweeping = held
	return g
}

// started begins a call.
func started(t *testing.T, g *Watcher) *Call {
	t.Helper()
	c, err := g.Begin(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// put makes a file and the directories above it.
func put(t *testing.T, path string) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must.Do(t, os.WriteFile(path, []byte("x"), 0o600))
}

// attack runs a call that makes a repository deep in a directory that is not watched, and
// returns what was found at its end.
func attack(t *testing.T, g *Watcher, ws string) []Incident {
	t.Helper()
	c := started(t, g)
	put(t, ws+"/a/b/c/.git/hooks/post-checkout")
	put(t, ws+"/old/.envrc")
	return c.End()
}

func project(t *testing.T) (dir, ws string) {
	t.Helper()
	dir = must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	ws = filepath.Join(dir, "ws")
	put(t, ws+"/.envrc")
	put(t, ws+"/old/.git/HEAD")
	put(t, ws+"/mine/.git/hooks/pre-commit")
	put(t, ws+"/mine/shared")
	put(t, ws+"/a/b/file")
	must.Do(t, os.Symlink("shared", ws+"/mine/.envrc"))
	tick()
	return dir, ws
}

// tick waits until what is made has a later time than what is there.
func tick() {
	for now := time.Now(); !nofollow.Stamp().After(now); {
		runtime.Gosched()
	}
}

// below lists what is at or below the names of interest.
func below(t *testing.T, ws string) string {
	t.Helper()
	var found []string
	for _, name := range []string{".envrc", "mine/.envrc", "mine/.git/hooks/pre-commit", "later/.git/hooks/pre-commit", "a/b/c/.git/hooks/post-checkout", "old/.envrc"} {
		if _, err := os.Lstat(filepath.Join(ws, name)); err == nil {
			found = append(found, name)
		}
	}
	return strings.Join(found, " ")
}

// later makes what a person makes once no call runs.
func later(t *testing.T, ws string) {
	t.Helper()
	tick()
	put(t, ws+"/later/.git/hooks/pre-commit")
	tick()
}

func paths(all []Incident, ws string) string {
	var list []string
	for _, i := range all {
		list = append(list, strings.TrimPrefix(i.Path, ws+"/"))
	}
	return strings.Join(list, " ")
}

const kept = ".envrc mine/.envrc mine/.git/hooks/pre-commit later/.git/hooks/pre-commit"

func TestWhatACallLeavesUnseenIsFoundWhenNoneRuns(t *testing.T) {
	t.Parallel()
	dir, ws := project(t)
	g := scarce(t, dir, true)
	if got := attack(t, g, ws); len(got) > 0 {
		t.Fatalf("all directories were looked through before the return: %v", got)
	}
	if why, unseen := g.Unwatched(); !unseen || !strings.Contains(why, "more than can be searched") {
		t.Errorf("Unwatched says %q", why)
	}
	later(t, ws)
	g.sweep()
	if diff := cmp.Diff(kept, below(t, ws)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if why, unseen := g.Unwatched(); unseen || !strings.Contains(why, "searched at the end") {
		t.Errorf("Unwatched still says %q", why)
	}
	if got := paths(started(t, g).End(), ws); got != "a/b/c/.git/hooks/post-checkout old/.envrc" && got != "old/.envrc a/b/c/.git/hooks/post-checkout" {
		t.Errorf("the next call reports %q", got)
	}
}

// What is looked through at the end of each call was there before it.
func TestWhatIsNotWatchedAndWasThereStays(t *testing.T) {
	t.Parallel()
	dir, ws := project(t)
	g := scarce(t, dir, true)
	g.mu.Lock()
	g.looks = maxUnwatched
	g.mu.Unlock()
	c := started(t, g)
	put(t, ws+"/mine/file")
	if got := paths(c.End(), ws); got != "" {
		t.Errorf("it was taken away: %s", got)
	}
	c = started(t, g)
	if err := os.Remove(ws + "/mine/.envrc"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", ws+"/mine/.envrc"); err != nil {
		t.Fatal(err)
	}
	if got := paths(c.End(), ws); got != "mine/.envrc" {
		t.Errorf("a link in the place of another is reported as %q", got)
	}
}

func TestTheSweepGoesOnByItself(t *testing.T) {
	t.Parallel()
	dir, ws := project(t)
	g := scarce(t, dir, false)
	attack(t, g, ws)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for strings.Contains(below(t, ws), "post-checkout") {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("it was not taken away")
		}
	}
}

func TestTheNextWatcherFindsWhatWasLeft(t *testing.T) {
	t.Parallel()
	dir, ws := project(t)
	g := scarce(t, dir, true)
	attack(t, g, ws)
	g.Close()
	later(t, ws)
	g = scarce(t, dir, false)
	g.mu.Lock()
	g.looks = maxUnwatched
	g.mu.Unlock()
	got := paths(started(t, g).End(), ws)
	if diff := cmp.Diff(kept, below(t, ws)); diff != "" {
		t.Errorf("(-want +got)\n%s\ntold: %s", diff, got)
	}
	if !strings.Contains(got, "post-checkout") || !strings.Contains(got, "old/.envrc") {
		t.Errorf("the first call reports %q", got)
	}
	if _, err := os.Lstat(string(g.options.Note("unseen"))); !os.IsNotExist(err) {
		t.Errorf("the note is still there: %v", err)
	}
}

func TestASurveyChangesNothing(t *testing.T) {
	t.Parallel()
	_, ws := project(t)
	put(t, ws+"/a/.git/hooks/post-checkout")
	directories, why, unseen := Survey(Options{Roots: []string{ws}, Names: []string{".git/hooks", ".envrc"}})
	if directories < 7 || why != "" || unseen {
		t.Errorf("%d directories, %q, %t", directories, why, unseen)
	}
	if _, why, _ := Survey(Options{Roots: []string{ws}, Watches: 2}); !strings.Contains(why, "searched at the end") {
		t.Errorf("with two watches: %q", why)
	}
	if got := below(t, ws); got != ".envrc mine/.envrc mine/.git/hooks/pre-commit" {
		t.Errorf("there is %s", got)
	}
}
