package fileworker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/internal/fileops"
	"github.com/toold/toold/sandbox/internal/helper"
)

// working returns a Pool with a worker for a workspace with these entries.
func working(t *testing.T, entries map[string]string) (f *Pool, p sandbox.Profile) {
	t.Helper()
	f, p = new(Pool), sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: must.Tree(t, entries)}
	t.Cleanup(f.Close)
	if _, _, err := f.Open(t.Context(), p, p.Workspace); errors.Is(err, sandbox.ErrUnavailable) {
		t.Skip(err)
	}
	return f, p
}

// read is what a file holds in the view of a profile.
func read(ctx context.Context, f *Pool, p sandbox.Profile, path string) (string, error) {
	file, _, err := f.Open(ctx, p, path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	b, err := os.ReadFile(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	return string(b), err
}

// pid is the process number of a worker.
func pid(t *testing.T, w *worker) int {
	t.Helper()
	for _, p := range helper.Processes() {
		if p.Parent == w.process.PID() {
			return p.PID
		}
	}
	t.Fatal("there is no worker")
	return 0
}

func TestAWorkerIsHeldByEveryLayer(t *testing.T) {
	t.Parallel()
	f, p := working(t, map[string]string{"f": "content"})
	file, report, err := f.Open(t.Context(), p, filepath.Join(p.Workspace, "f"))
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
	if got := strings.Join(report.Enforced, " "); report.Tier != "A" || report.Network || !strings.HasPrefix(got, "namespaces landlock:") || !strings.HasSuffix(got, "openat2") {
		t.Errorf("report %+v", report)
	}
	status := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/status", pid(t, f.workers.list[0]))))(t)
	for _, line := range []string{"Seccomp:\t2", "NoNewPrivs:\t1", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000"} {
		if !strings.Contains(string(status), line+"\n") {
			t.Errorf("%q is not in its status:\n%s", line, status)
		}
	}
}

// The daemon's own check looks at paths. What a hidden link leads to has another.
func TestAFileIsHiddenThatAHiddenLinkLeadsToSinceTheWorkerStarted(t *testing.T) {
	t.Parallel()
	f, p := working(t, map[string]string{"f": "content", "elsewhere/key": "secret"})
	p.Hide = []string{filepath.Join(p.Workspace, "keys")}
	key := filepath.Join(p.Workspace, "elsewhere/key")
	if got, err := read(t.Context(), f, p, key); err != nil || got != "secret" {
		t.Fatalf("%q, %v", got, err)
	}
	must.Do(t, os.Symlink("elsewhere", p.Hide[0]))
	if got, err := read(t.Context(), f, p, key); err == nil {
		t.Errorf("it shows %q", got)
	}
	if err := f.Replace(t.Context(), p, filepath.Join(p.Workspace, "elsewhere/new"), Replacement{}); err == nil {
		t.Error("it is written there")
	}
	if got, err := read(t.Context(), f, p, filepath.Join(p.Workspace, "f")); err != nil || got != "content" {
		t.Errorf("of another file: %q, %v", got, err)
	}
}

func TestWhatIsProtectedIsReadAndNotReplaced(t *testing.T) {
	t.Parallel()
	f, p := working(t, map[string]string{"d/hook": "old", "d/f": "old"})
	hook := filepath.Join(p.Workspace, "d/hook")
	write := func(name string) error {
		return (&access{t: t, files: f, p: p}).rewrite(filepath.Join(p.Workspace, "d", name), "new")
	}
	p.Protect = []string{hook}
	if err := write("hook"); err == nil || content(t, hook) != "old" {
		t.Errorf("protected: %v, it holds %q", err, content(t, hook))
	}
	if err := write("f"); err != nil {
		t.Errorf("beside it: %v", err)
	}
	if p.Protect = nil; write("hook") != nil || content(t, hook) != "new" {
		t.Errorf("granted: it holds %q", content(t, hook))
	}
	// Another file is there now than the one that was protected.
	p.Protect = []string{hook}
	if err := write("hook"); err == nil {
		t.Error("protected again: written")
	}
	only(t, filepath.Join(p.Workspace, "d"), "f", "hook")
	if n := len(f.workers.list); n != 1 {
		t.Errorf("there are %d workers for one profile", n)
	}
}

func TestAFolderThatTookTheWorkspacesPlaceIsTheWorkspace(t *testing.T) {
	t.Parallel()
	f, p := working(t, map[string]string{"ws/f": "old", "other/f": "new"})
	up := p.Workspace
	p.Workspace = filepath.Join(up, "ws")
	path := filepath.Join(p.Workspace, "f")
	if got, err := read(t.Context(), f, p, path); err != nil || got != "old" {
		t.Fatalf("%q, %v", got, err)
	}
	must.Do(t, errors.Join(os.Rename(p.Workspace, filepath.Join(up, "gone")), os.Rename(filepath.Join(up, "other"), p.Workspace)))
	if got, err := read(t.Context(), f, p, path); err != nil || got != "new" {
		t.Errorf("%q, %v", got, err)
	}
	if err := (&access{t: t, files: f, p: p}).rewrite(path, "newer"); err != nil || content(t, path) != "newer" {
		t.Errorf("%v", err)
	}
}

func TestNothingIsOpenedWhereNoWorkerCanBe(t *testing.T) {
	t.Parallel()
	root := must.Tree(t, map[string]string{"f": "content"})
	path := filepath.Join(root, "f")
	for name, tc := range map[string]struct {
		files *Pool
		p     sandbox.Profile
	}{
		"nobody opens":        {nil, sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: root}},
		"the mode is unknown": {new(Pool), sandbox.Profile{Mode: 7, Workspace: root}},
		"a root is missing":   {new(Pool), sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: root, Write: []string{root + "/missing"}}},
		"it is closed":        {closed(), sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: root}},
	} {
		if got, err := read(t.Context(), tc.files, tc.p, path); err == nil {
			t.Errorf("%s: it reads %q", name, got)
		}
		if err := tc.files.Replace(t.Context(), tc.p, filepath.Join(root, "new"), Replacement{}); err == nil {
			t.Errorf("%s: written", name)
		}
		tc.files.Close()
	}
	only(t, root, "f")
}

func closed() *Pool {
	f := new(Pool)
	f.Close()
	return f
}

func TestAWorkerThatDiesIsReplacedOnce(t *testing.T) {
	t.Parallel()
	f, p := working(t, map[string]string{"f": "content"})
	path := filepath.Join(p.Workspace, "f")
	kill := func(w *worker) {
		if err := unix.Kill(pid(t, w), unix.SIGKILL); err != nil {
			t.Error(err)
		}
		<-w.process.Exited()
	}
	for range 3 {
		kill(f.workers.list[0])
		if got, err := read(t.Context(), f, p, path); err != nil || got != "content" {
			t.Fatalf("%q, %v", got, err)
		}
		kill(f.workers.list[0])
		must.Do(t, (&access{t: t, files: f, p: p}).rewrite(path, "content"))
	}
	died, reported := 0, []error{}
	f.Report(func(err error) { reported = append(reported, err) })
	_, err := f.workers.ask(t.Context(), p, true, func(w *worker, c *fileops.Conn) error {
		died++
		kill(w)
		_, err := c.Open(path, nil)
		return err
	})
	if !errors.Is(err, fileops.ErrLost) || died != 2 {
		t.Errorf("%d died, then %v", died, err)
	}
	if len(reported) != 1 || !errors.Is(reported[0], fileops.ErrLost) {
		t.Errorf("reported: %v", reported)
	}
	only(t, p.Workspace, "f")
}

// A worker that is stopped is like one that waits for a dead network mount.
func TestWhoGivesUpWaitingDoesNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	f, p := working(t, map[string]string{"f": "content"})
	path := filepath.Join(p.Workspace, "f")
	stop(t, pid(t, f.workers.list[0]))
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if got, err := read(ctx, f, p, path); !errors.Is(err, context.Canceled) {
			t.Errorf("%q, %v", got, err)
		}
	})
	for !used(f) { // by the one who is going to wait
		runtime.Gosched()
	}
	cancel()
	waiting.Wait()
	if got, err := read(t.Context(), f, p, path); err != nil || got != "content" {
		t.Errorf("afterwards: %q, %v", got, err)
	}
}

// used reports whether somebody uses a worker.
func used(f *Pool) bool {
	f.workers.mu.Lock()
	defer f.workers.mu.Unlock()
	return slices.ContainsFunc(f.workers.list, func(w *worker) bool { return w.users > 0 })
}

// stop stops every thread of a process.
func stop(t *testing.T, pid int) {
	t.Helper()
	must.Do(t, unix.Kill(pid, unix.SIGSTOP))
	for running := true; running; {
		states, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if err != nil || len(states) == 0 {
			t.Fatalf("the worker is gone: %v", err)
		}
		running = false
		for _, state := range states {
			b, err := os.ReadFile(state)
			running = running || err == nil && !strings.Contains(string(b), ") T ")
		}
	}
}

func TestManyFilesAreOpenedAndReplacedAtOnce(t *testing.T) {
	first, _ := working(t, nil) // opens what the runtime keeps
	first.Close()
	before := descriptors(t)
	f, p := working(t, nil)
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			path := filepath.Join(p.Workspace, fmt.Sprint(i))
			a := &access{t: t, files: f, p: p}
			if err := a.replace(path, Replacement{Data: []byte("first")}); err != nil {
				t.Error(err)
				return
			}
			for n := range 5 {
				want := fmt.Sprint(i, n)
				if err := a.rewrite(path, want); err != nil {
					t.Error(err)
				}
				if got, err := read(t.Context(), f, p, path); err != nil || got != want {
					t.Errorf("got %q, %v; want %q", got, err, want)
				}
			}
		})
	}
	all.Wait()
	if n := len(f.workers.list); n != 1 {
		t.Errorf("there are %d workers", n)
	}
	f.Close()
	if now := descriptors(t); now > before {
		t.Errorf("%d descriptors are open, %d were", now, before)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries := must.Get(os.ReadDir("/proc/self/fd"))(t)
	return len(entries)
}

func TestAFewProfilesHaveAWorkerAtATime(t *testing.T) {
	t.Parallel()
	f, p := working(t, map[string]string{"f": "content"})
	path := filepath.Join(p.Workspace, "f")
	for i := range mostWorkers + 2 {
		p.Hide = []string{fmt.Sprintf("/nowhere/%d", i)}
		if got, err := read(t.Context(), f, p, path); err != nil || got != "content" {
			t.Fatalf("%q, %v", got, err)
		}
	}
	if n := len(f.workers.list); n != mostWorkers {
		t.Errorf("there are %d workers", n)
	}
}
