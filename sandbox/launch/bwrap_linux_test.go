package launch_test

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/caches"
	"github.com/toold/toold/sandbox/fileworker"
	"github.com/toold/toold/sandbox/launch"
)

// tierBwrap is a profile in tier A-bwrap; the test is skipped where there is no bwrap.
func tierBwrap(t *testing.T, p sandbox.Profile) sandbox.Profile {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "/usr/bin/bwrap", "--unshare-user", "--disable-userns", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc",
		"--size", "4096", "--tmpfs", "/tmp", "true").CombinedOutput(); err != nil {
		t.Skipf("there is no bwrap here that can do what is needed: %v: %s", err, out)
	}
	p.Launcher = "bwrap"
	p, report, err := launch.Choose(t.Context(), p, sandbox.TierA)
	if err != nil || report.Tier != "A-bwrap" || !strings.Contains(report.Degraded, "sandbox.launcher") {
		t.Fatalf("%+v, %v", report, err)
	}
	return p
}

// files makes files by path and content.
func files(t *testing.T, texts map[string]string) {
	t.Helper()
	for path, text := range texts {
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(text), 0o644))
	}
}

// visible is a fresh folder outside of what every call has for itself.
func visible(t *testing.T) string {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skipf("there is no home: %v", err)
	}
	dir, err := os.MkdirTemp(home, "toold-test-")
	if err != nil {
		t.Skipf("nothing can be written at home: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// sleeper is somebody else's process of the same user.
func sleeper(t *testing.T) (pid string) {
	t.Helper()
	c := exec.Command("sleep", "600")
	must.Do(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return strconv.Itoa(c.Process.Pid)
}

// escapes are tried in turn by a call. Each that succeeds is printed.
const escapes = `exec 2>/dev/null; while read -r try; do (eval "$try") </dev/null >/dev/null && echo "$try"; done <<'END'
cat $OUT/key
cat $OUT/link
ls $OUT/keys
cat $OUT/keys/a
cat $PWD/secret
chmod 644 $OUT/key
echo x >$OUT/seen
touch $OUT/new
chmod 600 $OUT/seen
touch -d 2001-01-01 $OUT/seen
mv $OUT/seen $OUT/other
echo x >repo/.git/config
rm -f repo/.git/config
mv repo/.git repo/other
mv repo other
rm -rf repo
mv secret secret2
kill -9 $V
kill -0 $V
ls /proc/$V
renice 19 -p $V
echo 1 >/proc/sys/kernel/panic
echo 1 >/proc/sys/vm/drop_caches
echo 0 >/proc/sys/user/max_user_namespaces
unshare -U true
unshare -m true
mount -t tmpfs none /tmp
mount -o remount,rw /
umount $OUT/key
echo >/dev/tcp/127.0.0.1/$PORT
ls /tmp/toold-test-*
grep -E '^Cap(Inh|Prm|Eff|Bnd|Amb):.*[1-9a-f]' /proc/self/status
ls /dev/vda /dev/mem /dev/kmsg
cat $OUT/seen
cat repo/.git/config
echo x >repo/new && mv repo/new repo/newer && rm repo/newer
echo x >/tmp/x && cat /tmp/x
echo x >/dev/shm/x
test -c /dev/null && test -e /dev/stdin && test -d /proc/self
END
`

func TestTierBwrapHolds(t *testing.T) {
	t.Parallel()
	ws, out := folder(t), visible(t)
	key, keys, secret, config := filepath.Join(out, "key"), filepath.Join(out, "keys"), filepath.Join(ws, "secret"), filepath.Join(ws, "repo/.git/config")
	files(t, map[string]string{key: "key", filepath.Join(keys, "a"): "a", secret: "secret", config: "[core]", filepath.Join(out, "seen"): "seen"})
	must.Do(t, os.Symlink(key, filepath.Join(out, "link")))
	p := tierBwrap(t, sandbox.Profile{
		Mode: sandbox.WorkspaceWrite, Workspace: ws, Hide: []string{key, keys, filepath.Join(keys, "a"), secret, filepath.Join(out, "missing"), "/tmp/toold-test-key"},
		Protect: []string{config, filepath.Join(ws, "gone/.envrc")}, Limits: sandbox.Limits{Processes: 100, MemoryBytes: 1 << 30, TmpBytes: 1 << 20, OpenFiles: 256},
	})
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	got, left := runTier(t, p, escapes+`(setsid sleep 601 </dev/null >/dev/null & )`, "OUT="+out, "V="+sleeper(t), "PORT="+port)
	want := `cat $OUT/seen
cat repo/.git/config
echo x >repo/new && mv repo/new repo/newer && rm repo/newer
echo x >/tmp/x && cat /tmp/x
echo x >/dev/shm/x
test -c /dev/null && test -e /dev/stdin && test -d /proc/self
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the call could do differs (+ is what it could):\n%s", diff)
	}
	if len(left) != 1 { // whatever it is called that early
		t.Errorf("left: %+v", left)
	}
	for path, text := range map[string]string{key: "key", secret: "secret", config: "[core]"} {
		if b, err := os.ReadFile(path); err != nil || string(b) != text {
			t.Errorf("%s holds %q, %v", path, b, err)
		}
	}
	if entries, err := os.ReadDir(ws); err != nil || len(entries) != 2 {
		t.Errorf("something was left in the workspace: %v, %v", entries, err)
	}
}

func TestFileToolsSeeInTierBwrapWhatCommandsSee(t *testing.T) {
	t.Parallel()
	ws, out := folder(t), visible(t)
	seen, key, inside := filepath.Join(out, "seen"), filepath.Join(out, "key"), filepath.Join(ws, "f")
	files(t, map[string]string{seen: "seen", key: "key"})
	p := tierBwrap(t, sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: ws, Hide: []string{key}})
	var all fileworker.Pool
	defer all.Close()
	must.Do(t, all.Replace(t.Context(), p, inside, fileworker.Replacement{Data: []byte("content")}))
	for path, want := range map[string]string{inside: "content", seen: "seen"} {
		f, report, err := all.Open(t.Context(), p, path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(f)
		f.Close()
		if string(b) != want || err != nil || report.Tier != "A-bwrap" {
			t.Errorf("%s holds %q, %v; %+v", path, b, err, report)
		}
	}
	if f, _, err := all.Open(t.Context(), p, key); err == nil {
		f.Close()
		t.Error("a hidden file was opened")
	}
	if err := all.Replace(t.Context(), p, seen, fileworker.Replacement{Data: []byte("x")}); err == nil {
		t.Error("written outside of the workspace")
	}
}

// A shell that waits for its script is as good there as elsewhere.
func TestAShellWaitsForItsScriptInTierBwrap(t *testing.T) {
	t.Parallel()
	ws := folder(t)
	p := tierBwrap(t, sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: ws})
	streams := launch.NewStreams(t)
	call := must.Get(launch.Start(t.Context(), launch.Command{
		Argv: []string{"/bin/bash", "-c"}, Env: []string{"PATH=" + os.Getenv("PATH")}, Dir: ws, Room: 1000,
		Stdin: streams.Null, Stdout: streams.Out, Stderr: streams.Out, Profile: p,
	}))(t)
	if err := call.SetScript("echo it; echo x >f"); err != nil {
		t.Error(err)
	}
	if err := call.Release(t.Context()); err != nil {
		t.Error(err)
	}
	<-call.Exited()
	if status, ok := call.Status(); !ok || status.ExitStatus() != 0 {
		t.Errorf("it ended with %v, %v", status, ok)
	}
	call.End()
	if got := streams.Printed(t); got != "it\n" {
		t.Errorf("it printed %q", got)
	}
}

// The daemon's end of a pipe does not wait for what is not there. The call's does.
func TestStreamsWaitInTierBwrap(t *testing.T) {
	t.Parallel()
	p := tierBwrap(t, sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: folder(t)})
	streams := launch.NewStreams(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	call, err := launch.Start(t.Context(), launch.Command{
		Argv: []string{"/bin/bash", "-c", "head -c 1000000 /dev/zero; echo $? >&2"}, Env: []string{"PATH=" + os.Getenv("PATH")}, Dir: "/",
		Stdin: streams.Null, Stdout: w, Stderr: streams.Out, Profile: p,
	})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	<-call.Exited()
	call.End()
	if printed := streams.Printed(t); len(b) != 1_000_000 || err != nil || printed != "0\n" {
		t.Errorf("read %d bytes, %v; it printed %q", len(b), err, printed)
	}
}

func TestAFolderThatIsGoneIsARefusalInTierBwrap(t *testing.T) {
	t.Parallel()
	ws := filepath.Join(folder(t), "ws")
	must.Do(t, os.Mkdir(ws, 0o700))
	p := tierBwrap(t, sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: ws})
	must.Do(t, os.Remove(ws))
	refuses(t, p, "open root "+ws)
}

// Of a tool cache a call sees what calls have put there, and nothing of the machine's.
func TestCachesArePrivateInTierBwrap(t *testing.T) {
	t.Parallel()
	out := visible(t)
	cache := filepath.Join(out, "cache")
	files(t, map[string]string{filepath.Join(cache, "of-the-machine"): "x"})
	set := must.Get(caches.Open(t.Context(), launch.Overlays, filepath.Join(out, "store"), []caches.Cache{{Path: cache}, {Path: filepath.Join(out, "none"), Env: "OWN"}}))(t)
	defer set.Close()
	p := tierBwrap(t, sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: folder(t), Caches: set})
	got, _ := runTier(t, p, `ls "$C"; echo x >"$C/new"; ls "$C"; echo x >"$OWN/own"; ls "$OWN"`, append(p.Caches.Env(), "C="+cache)...)
	if got != "new\nown\n" {
		t.Errorf("it printed %q", got)
	}
	if len(p.Caches.Problems()) != 1 {
		t.Errorf("nobody tells: %v", p.Caches.Problems())
	}
	if _, err := os.Lstat(filepath.Join(cache, "new")); err == nil {
		t.Error("the machine's cache was changed")
	}
}

func TestOnlyRootsBwrapIsTaken(t *testing.T) {
	t.Parallel()
	for _, p := range []sandbox.Profile{
		{Mode: sandbox.WorkspaceWrite, Workspace: folder(t), Write: []string{"/usr"}},
		{Mode: sandbox.WorkspaceWrite, Workspace: "/usr/bin"},
	} {
		p.Launcher = "bwrap"
		if _, _, err := launch.Choose(t.Context(), p, sandbox.TierC); !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(err.Error(), "may write the directory") {
			t.Errorf("%v", err)
		}
	}
}
