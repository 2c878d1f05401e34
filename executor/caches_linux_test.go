package executor_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/caches"
	"github.com/toold/toold/sandbox/launch"
)

// cacheHome is a home with one cache, which the machine has filled, and a store.
type cacheHome struct{ dir, cache, store string }

func newCacheHome(t testing.TB) cacheHome {
	t.Helper()
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	h := cacheHome{dir, filepath.Join(dir, ".cache"), filepath.Join(dir, "state", "caches")}
	for path, text := range map[string]string{"a/file": "the machine's\n", "a/sub/other": "other\n"} {
		path = filepath.Join(h.cache, path)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return h
}

func (h cacheHome) open(t testing.TB, list ...caches.Cache) *caches.Set {
	t.Helper()
	requireNamespaces(t)
	if list == nil {
		list = []caches.Cache{{Path: h.cache}}
	}
	c := must.Get(caches.Open(t.Context(), launch.Overlays, h.store, list))(t)
	t.Cleanup(c.Close)
	return c
}

func filesIn(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	must.Do(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir)] = string(b)
		return err
	}))
	return files
}

// breakOverlay puts a link where the kernel would keep its work: no link of a store
// is followed.
func (h cacheHome) breakOverlay(t testing.TB) {
	t.Helper()
	works, err := filepath.Glob(filepath.Join(h.store, "*", "work"))
	if err != nil || len(works) != 1 {
		t.Fatal(works, err)
	}
	must.Do(t, os.RemoveAll(works[0]))
	must.Do(t, os.Symlink(t.TempDir(), works[0]))
}

func requireOverlay(t testing.TB, c *caches.Set) {
	t.Helper()
	for path, why := range c.Problems() {
		t.Skipf("no overlay over %s: %v", path, why)
	}
}

func TestCallsChangeCachesAndTheMachineKeepsIts(t *testing.T) {
	t.Parallel()
	h := newCacheHome(t)
	before := filesIn(t, h.cache)
	set := h.open(t)
	requireOverlay(t, set)
	c := in(t, executor.Off, `cd `+h.cache+`; cat a/file; echo new >a/file; rm a/sub/other; mkdir b; echo b >b/f; mv a/sub a/moved; echo $?`)
	c.Sandbox.Caches = set
	got, exit := run(t, c)
	must.Match(t, result{Out: "the machine's\n0\n"}, got)
	if exit.Sandbox.Caches != "overlay" {
		t.Errorf("the report says %q of the caches", exit.Sandbox.Caches)
	}
	c.Script = `cd ` + h.cache + `; cat a/file b/f; ls a/moved a/sub 2>/dev/null; find . -type f | sort`
	expect(t, c, result{Out: "new\nb\na/moved:\n./a/file\n./b/f\n"})
	if diff := cmp.Diff(before, filesIn(t, h.cache)); diff != "" {
		t.Errorf("the machine's cache was changed: %s", diff)
	}
}

// Not parallel: a process that another test forks has the lock for a moment too.
func TestCachesLastAndAreSharedByCallsAtOnce(t *testing.T) {
	h := newCacheHome(t)
	set := h.open(t)
	requireOverlay(t, set)
	waits := in(t, executor.Off, `cd `+h.cache+`; echo 1 >one; until [ -e two ]; do :; done; cat two`)
	writes := in(t, executor.Off, `cd `+h.cache+`; until [ -e one ]; do :; done; echo 2 >two.part; mv two.part two; cat one`)
	waits.Sandbox.Caches, writes.Sandbox.Caches = set, set
	var both sync.WaitGroup
	// Each ends with its command.
	both.Go(func() { expect(t, waits, result{Out: "2\n"}) })
	both.Go(func() { expect(t, writes, result{Out: "1\n"}) })
	both.Wait()
	set.Close()
	later := in(t, executor.Off, `cat `+h.cache+`/one`)
	later.Sandbox.Caches = h.open(t)
	expect(t, later, result{Out: "1\n"})
}

func TestTwoDaemonsNeverShareAStore(t *testing.T) {
	t.Parallel()
	h := newCacheHome(t)
	first, second := h.open(t), h.open(t)
	c := in(t, executor.Off, `echo 1 >`+h.cache+`/one; ls `+h.cache)
	c.Sandbox.Caches = first
	run(t, c)
	c.Script, c.Sandbox.Caches = `[ -e `+h.cache+`/one ] || echo apart`, second
	expect(t, c, result{Out: "apart\n"})
}

func TestACacheThatTheMachineLacksIsNamedByAVariable(t *testing.T) {
	t.Parallel()
	h := newCacheHome(t)
	missing := filepath.Join(h.dir, "none", "cache")
	set := h.open(t, caches.Cache{Path: missing, Env: "MY_CACHE"}, caches.Cache{Path: missing + "2"})
	c := in(t, executor.Off, `echo x >>"$MY_CACHE/f"; wc -l <"$MY_CACHE/f"`)
	c.Sandbox.Caches = set
	c.Env = executor.BaseEnv(executor.EnvOptions{From: c.Env, Default: set.Env()})
	expect(t, c, result{Out: "1\n"})
	expect(t, c, result{Out: "2\n"})
	if _, err := os.Lstat(filepath.Dir(missing)); !os.IsNotExist(err) {
		t.Errorf("the machine got %s: %v", filepath.Dir(missing), err)
	}
}

func TestWithoutAnOverlayCallsHaveAPrivateCache(t *testing.T) {
	t.Parallel()
	h := newCacheHome(t)
	before := filesIn(t, h.cache)
	h.open(t).Close()
	h.breakOverlay(t)
	set := h.open(t)
	if len(set.Problems()) != 1 {
		t.Fatalf("problems are %v", set.Problems())
	}
	c := in(t, executor.Off, `cd `+h.cache+`; ls; echo x >f`)
	c.Sandbox.Caches = set
	_, exit := run(t, c)
	if exit.Sandbox.Caches != "private" {
		t.Errorf("the report says %q of the caches", exit.Sandbox.Caches)
	}
	expect(t, c, result{Out: "f\n"})
	if diff := cmp.Diff(before, filesIn(t, h.cache)); diff != "" {
		t.Errorf("the machine's cache was changed: %s", diff)
	}
}

func TestASecretInACacheStaysHidden(t *testing.T) {
	t.Parallel()
	h := newCacheHome(t)
	secret := filepath.Join(h.cache, "a", "sub", "other")
	c := in(t, executor.Off, `cd `+h.cache+`; cat a/sub/other; mv a x; mv a/sub a/y; rm -rf a/sub; ln a/sub/other l; find . -name other -exec cat {} +`)
	c.Sandbox.Caches, c.Sandbox.Hide = h.open(t), []string{secret}
	run(t, c)
	c.Script = `find ` + h.cache + ` -type f -exec cat {} + 2>/dev/null`
	got, _ := run(t, c)
	if strings.Contains(got.Out, "other") {
		t.Errorf("a call read %q", got.Out)
	}
}

func TestReadOnlyCallsHaveNoCaches(t *testing.T) {
	t.Parallel()
	h := newCacheHome(t)
	c := in(t, executor.Off, `cat `+h.cache+`/a/file; (echo x >`+h.cache+`/new) 2>/dev/null || echo refused`)
	c.Sandbox.Mode, c.Sandbox.Caches, c.Sandbox.Workspace = sandbox.ReadOnly, h.open(t), h.dir
	c.Dir = h.dir
	got, exit := run(t, c)
	if got.Out != "the machine's\nrefused\n" || exit.Sandbox.Caches != "" {
		t.Errorf("got %q, caches %q", got.Out, exit.Sandbox.Caches)
	}
}

func TestWaitingShellsHaveCaches(t *testing.T) {
	t.Parallel()
	h := newCacheHome(t)
	c := in(t, executor.Off, `echo x >>`+h.cache+`/f; wc -l <`+h.cache+`/f`)
	c.Sandbox.Caches = h.open(t)
	pool := executor.NewPool(2, nil)
	defer pool.Close()
	for _, want := range []string{"1\n", "2\n", "3\n", "4\n"} {
		var out bytes.Buffer
		c.Stdout, c.Stderr = &out, &out
		must.Get(pool.Run(t.Context(), c))(t)
		if out.String() != want {
			t.Errorf("got %q, want %q", out.String(), want)
		}
	}
}

// A daemon that is killed leaves its store to the next one, as soon as no call of
// it can write there any more, and the machine's cache as it was. Not parallel, see
// above.
func TestAKilledDaemonsCachesAreFoundAgain(t *testing.T) {
	h := newCacheHome(t)
	before := filesIn(t, h.cache)
	c := in(t, executor.Off, `echo x >`+h.cache+`/f; echo ready; sleep 1000`)
	daemon := exec.CommandContext(t.Context(), "/proc/self/exe")
	daemon.Env = append(os.Environ(), "PLAY_DAEMON="+c.Dir, "PLAY_PROFILE=workspace-write",
		"PLAY_SCRIPT="+c.Script, "PLAY_CACHE="+h.cache, "PLAY_STORE="+h.store)
	out := listenFor("ready")
	daemon.Stdout, daemon.Stderr = out, os.Stderr
	must.Do(t, daemon.Start())
	<-out.come
	must.Do(t, daemon.Process.Kill())
	_ = daemon.Wait() // its end is our kill
	lock := must.Get(os.Open(filepath.Join(h.store, "lock")))(t)
	defer lock.Close()
	// Waits for the helper, which holds the lock as well.
	must.Do(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	lock.Close()
	c.Script, c.Sandbox.Caches = `cat `+h.cache+`/f`, h.open(t)
	expect(t, c, result{Out: "x\n"})
	if diff := cmp.Diff(before, filesIn(t, h.cache)); diff != "" {
		t.Errorf("the machine's cache was changed: %s", diff)
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || bytes.Contains(mounts, []byte(h.dir)) {
		t.Errorf("the machine has mounts of the caches: %s, %v", mounts, err)
	}
}

// TestTheStoreCanBeRemoved: the kernel makes a folder in it that nobody may enter.
func TestTheStoreCanBeRemoved(t *testing.T) {
	t.Parallel()
	h := newCacheHome(t)
	c := in(t, executor.Off, `rm -r `+h.cache+`/a`)
	c.Sandbox.Caches = h.open(t)
	run(t, c)
	c.Sandbox.Caches.Close()
	if out, err := exec.CommandContext(t.Context(), "rm", "-r", h.store).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// Not parallel: a process that another test forks has the lock for a moment too.
func TestCachesThatAreTooLargeBeginAnewForLaterCalls(t *testing.T) {
	h := newCacheHome(t)
	missing := caches.Cache{Path: filepath.Join(h.dir, "later"), Env: "LATER"}
	set := h.open(t, caches.Cache{Path: h.cache}, missing)
	requireOverlay(t, set)
	env := set.Env()
	call := func(script, want string) {
		t.Helper()
		c := in(t, executor.Off, script)
		c.Sandbox.Caches = set
		expect(t, c, result{Out: want})
	}
	limit := func() {
		t.Helper()
		must.Do(t, set.Limit(t.Context(), 1<<20))
	}
	limit()
	call("cd "+h.cache+" && echo x >a/file && head -c 2M /dev/zero >big && ls", "a\nbig\n")
	must.Do(t, os.Mkdir(missing.Path, 0o700))
	limit()
	call("cd "+h.cache+" && ls && cat a/file", "a\nthe machine's\n")
	if diff := cmp.Diff(env, set.Env()); diff != "" {
		t.Errorf("the variables of calls: %s", diff)
	}
	if removed, err := caches.RemoveStore(h.store); removed || err != nil {
		t.Errorf("what a call could still be given was removed: %v, %v", removed, err)
	}
	limit()
	if removed, err := caches.RemoveStore(h.store); !removed || err != nil {
		t.Errorf("the old store: %v, %v", removed, err)
	}
	call("echo y >"+h.cache+"/b; ls "+h.cache, "a\nb\n")
}
