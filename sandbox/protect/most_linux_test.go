package protect

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func watchNames(t *testing.T, ws string, names ...string) *Watcher {
	t.Helper()
	g, err := New(Options{Roots: []string{ws}, Names: names, Quarantine: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// ends waits until a call has to end, ends it, and returns how many of what it left was removed.
func ends(t *testing.T, c *Call, violated chan struct{}) (removed int) {
	t.Helper()
	<-violated
	for _, i := range c.End() {
		if i.Own {
			continue
		}
		if removed++; i.Why != tooMany || i.Instead == "" || i.Err != nil || i.Later {
			t.Errorf("%+v", i)
		}
	}
	return removed
}

// Each of them is mounted for every later call; with too many, the kernel refuses to.
func TestACallMayNotLeaveMoreProtectedNamesThanAreMounted(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{"files": ".envrc", "repositories": ".git/HEAD"} {
		for _, busy := range []bool{false, true} {
			t.Run(fmt.Sprint(name, busy), func(t *testing.T) {
				t.Parallel()
				_, ws := project(t)
				g := watchNames(t, ws, ".envrc", ".git/config", ".git/hooks")
				if busy {
					defer started(t, g).End()
				}
				before := len(started(t, g).Existing())
				c, violated := digger(t, g)
				for i := range mostLeft + mostFindings + 500 {
					put(t, fmt.Sprintf("%s/new/%d/%s", ws, i, file))
				}
				if removed := ends(t, c, violated); removed != mostReported {
					t.Errorf("%d were reported as removed", removed)
				}
				for g.isSweeping() {
					if err := g.Sync(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				next, ended := digger(t, g)
				if n := len(next.Existing()) - before; n > mostLeft {
					t.Errorf("%d are protected for the next call", n)
				}
				left, err := filepath.Glob(ws + "/new/*/" + file)
				if err != nil || len(left) == 0 || len(left) > mostLeft {
					t.Errorf("%d are left, %v", len(left), err)
				}
				put(t, ws+"/other/"+file)
				next.End()
				select {
				case <-ended:
					t.Error("the next call had to end")
				default:
				}
			})
		}
	}
}

func (w *Watcher) isSweeping() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sweeping
}

func TestNamesThatACallRemovesAgainDoNotCount(t *testing.T) {
	t.Parallel()
	_, ws := project(t)
	g := watchNames(t, ws, ".envrc")
	c, violated := digger(t, g)
	put(t, ws+"/new/file")
	for range mostLeft + 10 {
		put(t, ws+"/new/.envrc")
		if err := g.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(ws + "/new/.envrc"); err != nil {
			t.Fatal(err)
		}
		if err := g.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	put(t, ws+"/new/.envrc")
	if found := c.End(); len(found) != 1 || !found[0].Own {
		t.Errorf("%+v", found)
	}
	select {
	case <-violated:
		t.Error("the call had to end")
	default:
	}
}

func TestCallsAddNoneWhereThereAreTooMany(t *testing.T) {
	t.Parallel()
	_, ws := project(t)
	var names []string
	for i := range mostKept {
		names = append(names, fmt.Sprint("name-", i))
		put(t, ws+"/mine/"+names[i])
	}
	tick()
	g := watchNames(t, ws, names...)
	c, violated := digger(t, g)
	put(t, ws+"/new/"+names[0])
	if removed := ends(t, c, violated); removed != 1 {
		t.Errorf("%d were removed", removed)
	}
	if list := started(t, g).Existing(); len(list) != mostKept {
		t.Errorf("%d are protected for the next call", len(list))
	}
}
