package protect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// dig makes a chain of directories of this name in a directory, each in the one before.
func dig(t *testing.T, dir, name string, deep int) {
	t.Helper()
	at, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for range deep {
		if err != nil {
			t.Fatal(err)
		}
		err = unix.Mkdirat(at, name, 0o700)
		up := at
		if err == nil {
			at, err = unix.Openat(up, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			unix.Close(up)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(at)
}

// digger is a call in a workspace, and what is closed when it has to end.
func digger(t *testing.T, g *Watcher) (c *Call, violated chan struct{}) {
	t.Helper()
	violated = make(chan struct{}, 1)
	c, err := g.Begin(t.Context(), nil, func() {
		select {
		case violated <- struct{}{}:
		default:
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, violated
}

// deepest returns how many of the directories that dig makes are there.
func deepest(dir, name string) (n int) {
	for {
		if _, err := os.Lstat(dir + strings.Repeat("/"+name, n+1)); err != nil {
			return n
		}
		n++
	}
}

func TestACallThatMakesAChainOfDirectoriesEnds(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(ws string){
		"at once":       func(ws string) { dig(t, ws, "d", 3000) },
		"without names": func(ws string) { dig(t, ws, "d", 3000) }, // rules hide files there, too
		"beside an own name": func(ws string) {
			put(t, ws+"/d/d/.envrc")
			dig(t, ws+"/d/d", "d", 2998)
		},
		"of two": func(ws string) {
			dig(t, ws, "d", 200)
			dig(t, ws+"/mine", "d", 200)
			rename(t, ws+"/mine/d", ws+strings.Repeat("/d", 201))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, ws := project(t)
			o := Options{Roots: []string{ws}, Names: []string{".envrc"}, Quarantine: dir + "/quarantine"}
			if name == "without names" {
				o.Names = nil
			}
			g, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(g.Close)
			c, violated := digger(t, g)
			act(ws)
			<-violated
			found := c.End()
			want := ws + strings.Repeat("/d", Deepest+1)
			found = withoutOwn(found)
			if len(found) != 1 || found[0].Path != want || found[0].Kept == "" || found[0].Instead == "" || found[0].Err != nil {
				t.Errorf("found: %+v", found)
			}
			if n := deepest(ws, "d"); n != Deepest {
				t.Errorf("%d directories are left", n)
			}
			if again := started(t, g).End(); len(again) > 0 {
				t.Errorf("the next call finds %+v", again)
			}
			if why, _ := g.Unwatched(); why != "" {
				t.Errorf("Unwatched says %q", why)
			}
		})
	}
}

func withoutOwn(found []Incident) (list []Incident) {
	for _, i := range found {
		if !i.Own {
			list = append(list, i)
		}
	}
	return list
}

// What people have made stays, also when a call moves it; it is told that nothing is looked for in it.
func TestAChainOfDirectoriesThatWasThereStays(t *testing.T) {
	t.Parallel()
	dir, ws := project(t)
	dig(t, ws, "d", 300)
	put(t, ws+strings.Repeat("/d", 300)+"/.envrc")
	tick()
	g, err := New(Options{Roots: []string{ws}, Names: []string{".envrc", ".git/hooks"}, Quarantine: dir + "/quarantine"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	c, violated := digger(t, g)
	if why, unseen := g.Unwatched(); !strings.Contains(why, "1 directories of the workspace are below 256 others") || unseen {
		t.Errorf("Unwatched says %q, %t", why, unseen)
	}
	g.mu.Lock()
	g.handle(event{mask: unix.IN_Q_OVERFLOW}) // all is read again
	g.mu.Unlock()
	if found := c.End(); len(found) > 0 {
		t.Errorf("found: %+v", found)
	}
	select {
	case <-violated:
		t.Error("the call had to end")
	default:
	}
	c, violated = digger(t, g)
	rename(t, ws+"/d", ws+"/mine/d")
	<-violated
	if found := c.End(); len(found) != 1 || found[0].Kept != "" {
		t.Errorf("after it was moved, found: %+v", found)
	}
	if n := deepest(ws+"/mine", "d"); n != 300 {
		t.Errorf("%d directories are left", n)
	}
}

func TestASurveyTellsOfAChainOfDirectories(t *testing.T) {
	t.Parallel()
	_, ws := project(t)
	dig(t, ws, "d", 300)
	if _, why, _ := Survey(Options{Roots: []string{ws}}); !strings.Contains(why, "are below 256 others") {
		t.Errorf("%q", why)
	}
}

// However many directories appear at once, the lock is released after some.
func TestALargeTreeIsReadInPieces(t *testing.T) {
	t.Parallel()
	g, ws := watchHooks(t)
	c := started(t, g)
	g.mu.Lock() // the events wait
	before := len(g.tree.watch)
	const rows = 3 * piece / 10
	for i := range rows {
		dig(t, ws, fmt.Sprint(i), 10)
	}
	hook := fmt.Sprintf("%s/%d/.git/hooks/pre-commit", ws, rows-1)
	put(t, hook)
	g.pump(1)
	read := len(g.tree.watch) - before
	g.mu.Unlock()
	if read < 1 || read > piece {
		t.Errorf("%d directories were read at once", read)
	}
	if got := paths(c.End(), ws); got != strings.TrimPrefix(hook, ws+"/") {
		t.Errorf("found %q", got)
	}
}

func TestACallThatIsCancelledDoesNotWaitForOthers(t *testing.T) {
	t.Parallel()
	g, _ := watchHooks(t)
	started(t, g).End()
	g.mu.Lock()
	defer g.mu.Unlock()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the user cancelled it")
	cancel(why)
	if c, err := g.Begin(ctx, nil, nil); !errors.Is(err, why) || c != nil {
		t.Errorf("Begin: %v, %v", c, err)
	}
	if err := g.Sync(ctx); !errors.Is(err, why) {
		t.Errorf("Sync: %v", err)
	}
}
