package launch_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/fileworker"
	"github.com/toold/toold/sandbox/launch"
)

// noNamespaces runs the calling test again as an ordinary user who can make no user
// namespaces. It reports whether this is that second run.
func noNamespaces(t *testing.T) bool {
	t.Helper()
	if os.Getenv("TOOLD_TEST_BARE") != "" {
		must.Do(t, os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0))
		return true
	}
	inOwnNamespace(t)
	return false
}

// inOwnNamespace runs the calling test again as an ordinary user in a user namespace
// whose limits it may set.
func inOwnNamespace(t *testing.T) {
	t.Helper()
	const ordinary = 1000
	c := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), "TOOLD_TEST_BARE=1")
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: ordinary, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: ordinary, HostID: os.Getgid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_RESOURCE}, // to set the limit
	}
	out, err := c.CombinedOutput()
	if err != nil && !bytes.Contains(out, []byte("=== RUN")) {
		t.Skipf("no user can be made here that makes no namespaces: %v: %s", err, out)
	}
	if err != nil {
		t.Errorf("%v: %s", err, out)
	} else if bytes.Contains(out, []byte("--- SKIP")) {
		t.Skipf("skipped inside: %s", out)
	}
}

// The kind of namespace whose limit is reached is named, with a remedy that raises it.
func TestTheLimitOfNamespacesIsNamed(t *testing.T) {
	if os.Getenv("TOOLD_TEST_BARE") == "" {
		inOwnNamespace(t)
		return
	}
	for _, kind := range []string{"user", "mnt", "pid", "net", "ipc", "uts"} {
		limit := "/proc/sys/user/max_" + kind + "_namespaces"
		before, err := os.ReadFile(limit)
		if err == nil {
			err = os.WriteFile(limit, []byte("0"), 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = launch.Try(t.Context(), sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: folder(t)})
		var failed *sandbox.StageError
		want := "the limit is user.max_" + kind + "_namespaces, here 0: sudo sysctl -w user.max_" + kind + "_namespaces=10000"
		if !errors.As(err, &failed) || failed.Advice != want || !strings.Contains(err.Error(), "no more "+kind+" namespaces") {
			t.Errorf("without %s namespaces: %v, want the advice %q", kind, err, want)
		}
		must.Do(t, os.WriteFile(limit, bytes.TrimSpace(before), 0))
	}
}

// tierC is a profile in tier C; the test is skipped where the kernel gives none.
func tierC(t *testing.T, p sandbox.Profile) sandbox.Profile {
	t.Helper()
	p, report, err := launch.Choose(t.Context(), p, sandbox.TierC)
	var failed *sandbox.StageError
	if errors.As(err, &failed) && strings.Contains(err.Error(), "landlock") { // none, or one before version 6
		t.Skip(err)
	}
	if err != nil || report.Tier != "C" {
		t.Fatalf("%+v, %v", report, err)
	}
	for _, want := range []string{"max_user_namespaces", "files in the workspace that rules ask about or deny"} {
		if !strings.Contains(report.Degraded, want) {
			t.Errorf("%q does not say %q", report.Degraded, want)
		}
	}
	return p
}

// folder is a fresh canonical folder.
func folder(t *testing.T) string {
	t.Helper()
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	return dir
}

func TestTierCIsTakenOnlyWhereItIsAskedFor(t *testing.T) {
	if !noNamespaces(t) {
		return
	}
	p := sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: folder(t)}
	tierC(t, p)
	for _, lowest := range []sandbox.Tier{sandbox.TierA, sandbox.TierB} {
		_, report, err := launch.Choose(t.Context(), p, lowest)
		if !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(err.Error(), "sandbox.allow_degraded: tier-c") || report.Tier != "" {
			t.Errorf("with tier %s as the lowest: %+v, %v", lowest, report, err)
		}
	}
}

func TestTierCIsRefusedToRoot(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("this is about root")
	}
	_, err := launch.Try(t.Context(), sandbox.Profile{Workspace: folder(t), Tier: sandbox.TierC})
	if !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(err.Error(), "ordinary user") {
		t.Error(err)
	}
}

// attempts are tried in turn by a call. Each that succeeds is printed.
const attempts = `exec 2>/dev/null; while read -r try; do (eval "$try") </dev/null >/dev/null && echo "$try"; done <<'END'
cat $OUT/secret
cat in/link
ls $OUT
cd $OUT && cat secret
cd $OUT && ls
exec 7<$OUT/secret
ls /
echo x >$OUT/new
echo x >>$OUT/secret
: >|$OUT/secret
mv $OUT/secret in/
ln $OUT/secret in/hard
mkdir /tmp/toold-test-$$
kill -9 $V
kill -9 -$V
renice 19 -p $V
renice 19 -u $(id -u)
ionice -c 3 -u $(id -u)
prlimit --nofile=1 --pid $V
taskset -p 1 $V
cat /proc/$V/environ
readlink /proc/$V/fd/0
ls /proc/$V/root/
echo 1 >/proc/$V/oom_score_adj
(echo >/dev/tcp/127.0.0.1/1) 2>&1 | grep refused
echo >/dev/udp/127.0.0.1/53
ipcmk -M 4096
ipcmk -Q
perl -e 'require "syscall.ph"; exit(syscall(&SYS_inotify_init1, 0) < 0)'
unshare -U true
unshare -m true
cat $READ/hidden
cat $READ/below/hidden
ls $READ/below
echo x >$READ/new
cat $READ/below/seen
cat $READ/seen
cat in/own
echo x >in/new && mv in/new in/newer && rm in/newer
echo a | cat
cat /etc/passwd
test -e /proc/self/status
END
`

func TestTierCHolds(t *testing.T) {
	if !noNamespaces(t) {
		return
	}
	ws, out, read := folder(t), folder(t), folder(t)
	secret := filepath.Join(out, "secret")
	for path, text := range map[string]string{
		secret: "secret", filepath.Join(ws, "in/own"): "own", filepath.Join(read, "seen"): "1", filepath.Join(read, "hidden"): "2",
		filepath.Join(read, "below/hidden"): "3", filepath.Join(read, "below/seen"): "4",
	} {
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(text), 0o644))
	}
	must.Do(t, os.Symlink(secret, filepath.Join(ws, "in/link")))
	p := tierC(t, sandbox.Profile{
		Mode: sandbox.WorkspaceWrite, Workspace: ws, Read: []string{read}, Hide: []string{filepath.Join(read, "hidden"), filepath.Join(read, "below/hidden")},
		Limits: sandbox.Limits{MemoryBytes: 1 << 30},
	})
	victim := exec.CommandContext(t.Context(), "sleep", "600")
	victim.Env = []string{"TOKEN=secret"}
	must.Do(t, victim.Start())
	of := "/proc/" + strconv.Itoa(victim.Process.Pid)
	before := told(t, of)
	got, left := runTier(t, p, attempts+`trap 'echo heard' TERM; kill $$; (setsid env -i sleep 601 </dev/null >/dev/null & )`,
		"OUT="+out, "READ="+read, "V="+strconv.Itoa(victim.Process.Pid))
	want := "cat $READ/below/seen\ncat $READ/seen\ncat in/own\necho x >in/new && mv in/new in/newer && rm in/newer\n" +
		"echo a | cat\ncat /etc/passwd\ntest -e /proc/self/status\nheard\n"
	if got != want {
		t.Errorf("the call could do:\n%s", got)
	}
	if len(left) != 1 { // whatever it is called that early
		t.Errorf("left: %+v", left)
	}
	if after := told(t, of); after != before {
		t.Errorf("the other process was %q and is %q", before, after)
	}
	if b, err := os.ReadFile(secret); err != nil || string(b) != "secret" {
		t.Errorf("the file outside is %q, %v", b, err)
	}
	_ = victim.Process.Kill()
	_ = victim.Wait()
}

// A call has a directory of its own for temporary files, which it leaves nothing in.
func TestACallInTierCHasTemporaryFiles(t *testing.T) {
	if !noNamespaces(t) {
		return
	}
	p := tierC(t, sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: folder(t)})
	const script = `echo "$TMPDIR"; test -O "$TMPDIR" && echo x >"$TMPDIR/new" && cat "$TMPDIR/new"
ls "${TMPDIR%/*}" 2>/dev/null; mkdir -p "$TMPDIR/closed/in"; echo x >"$TMPDIR/closed/in/x"; chmod 0 "$TMPDIR/closed"; ln -s "$PWD" "$TMPDIR/link"`
	for range 2 {
		got, _ := runTier(t, p, script, "TMPDIR=/tmp")
		dir, rest, _ := strings.Cut(got, "\n")
		if !strings.Contains(dir, "/toold-call-") || rest != "x\n" {
			t.Errorf("got %q", got)
		}
		if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", dir, err)
		}
	}
	if _, err := os.Stat(p.Workspace); err != nil {
		t.Errorf("the workspace: %v", err)
	}
	if got, _ := runTier(t, p, `echo "$TMPDIR"`, "TMPDIR=/elsewhere"); got != "/elsewhere\n" {
		t.Errorf("the user's TMPDIR became %q", got)
	}
}

func TestFileToolsSeeInTierCWhatCommandsSee(t *testing.T) {
	if !noNamespaces(t) {
		return
	}
	ws, out := folder(t), folder(t)
	p := tierC(t, sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: ws})
	var files fileworker.Pool
	defer files.Close()
	inside, outside := filepath.Join(ws, "f"), filepath.Join(out, "f")
	must.Do(t, files.Replace(t.Context(), p, inside, fileworker.Replacement{Data: []byte("content")}))
	f, report, err := files.Open(t.Context(), p, inside)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if report.Tier != "C" {
		t.Errorf("report %+v", report)
	}
	must.Do(t, os.WriteFile(outside, []byte("secret"), 0o644))
	if f, _, err := files.Open(t.Context(), p, outside); err == nil {
		f.Close()
		t.Error("opened outside of what can be read")
	}
	if err := files.Replace(t.Context(), p, filepath.Join(out, "new"), fileworker.Replacement{Data: []byte("x")}); err == nil {
		t.Error("written outside of the workspace")
	}
}

// Whoever could lead a folder of the profile elsewhere would be given what is there.
func TestTierCFollowsNoLinkThatACallHasMade(t *testing.T) {
	if !noNamespaces(t) {
		return
	}
	ws, out := folder(t), folder(t)
	inner := filepath.Join(ws, "inner")
	must.Do(t, os.Symlink(out, inner))
	p := tierC(t, sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: ws})
	p.Write = []string{inner}
	refuses(t, p, "open root "+inner)
	p.Write, p.Hide = nil, []string{filepath.Join(ws, "hidden")}
	refuses(t, p, "cannot be hidden inside of "+ws)
}

// refuses starts a call that must not start.
func refuses(t *testing.T, p sandbox.Profile, why string) {
	t.Helper()
	null := must.Get(os.OpenFile(os.DevNull, os.O_RDWR, 0))(t)
	defer null.Close()
	call, err := launch.Start(t.Context(), launch.Command{Argv: []string{"/bin/true"}, Dir: "/", Stdin: null, Stdout: null, Stderr: null, Profile: p})
	if err == nil {
		call.End()
	}
	if !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(err.Error(), why) {
		t.Errorf("%v", err)
	}
}

func TestTierCLeavesTheTerminalsOfOthersAlone(t *testing.T) {
	if !noNamespaces(t) {
		return
	}
	other, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminal can be had: %v", err)
	}
	defer other.Close()
	n := must.Get(unix.IoctlGetInt(int(other.Fd()), unix.TIOCGPTN))(t)
	must.Do(t, unix.IoctlSetPointerInt(int(other.Fd()), unix.TIOCSPTLCK, 0))
	p := tierC(t, sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: folder(t)})
	name := "/dev/pts/" + strconv.Itoa(n)
	got, _ := runTier(t, p, `exec 2>/dev/null; echo x >$PTS && echo written; cat <$PTS >/dev/null && echo read; : >/dev/ptmx && echo made; echo end`, "PTS="+name)
	if got != "end\n" {
		t.Errorf("the call could do:\n%s", got)
	}
}
