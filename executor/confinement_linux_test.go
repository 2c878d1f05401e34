package executor_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
)

func TestWorkspaceIsAllThatCanBeWritten(t *testing.T) {
	t.Parallel()
	outside, home := t.TempDir(), "~/toold-test"
	if strings.HasPrefix(os.Getenv("HOME"), "/tmp") {
		home = "" // a command has its own /tmp
	}
	c := in(t, executor.Off, `echo x >inside && cat inside
for f in `+outside+`/f /etc/toold-test /usr/toold-test `+home+` /proc/sys/kernel/hostname /dev/toold-test /run/x/y; do
  (echo x >$f) 2>/dev/null && echo "wrote $f"
done
mkdir sub; mv sub sub2; ln -s /etc/passwd l; chmod 600 inside; rm -r sub2 l`)
	expect(t, c, result{Out: "x\n"})
	if b, err := os.ReadFile(filepath.Join(c.Dir, "inside")); err != nil || string(b) != "x\n" {
		t.Errorf("the workspace holds %q, %v", b, err)
	}
}

func TestFurtherRootsCanBeWritten(t *testing.T) {
	t.Parallel()
	more := t.TempDir()
	c := in(t, executor.Off, "echo x >"+more+"/f")
	c.Sandbox.Write = []string{more}
	expect(t, c, result{})
	if _, err := os.Stat(filepath.Join(more, "f")); err != nil {
		t.Error(err)
	}
}

func TestReadOnlyWritesNothing(t *testing.T) {
	t.Parallel()
	c := in(t, executor.Off, `cat there; (echo x >new) 2>/dev/null || echo refused; echo y >/tmp/mine && cat /tmp/mine`)
	c.Sandbox.Mode = sandbox.ReadOnly
	c.Sandbox.Write = []string{c.Dir} // belongs to workspace-write only
	must.Do(t, os.WriteFile(filepath.Join(c.Dir, "there"), []byte("there\n"), 0o600))
	expect(t, c, result{Out: "there\nrefused\ny\n"})
}

func TestTmpIsPrivateAndLimited(t *testing.T) {
	t.Parallel()
	outside, err := os.MkdirTemp("/tmp", "toold-test-") // the host's /tmp
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(outside) })
	c := in(t, executor.Off, `ls -A /var/tmp; [ -e `+outside+` ] && echo visible; echo x >/tmp/f && cp /tmp/f /var/tmp/f && cat /var/tmp/f
head -c 3000000 /dev/zero >/tmp/big 2>/dev/null; [ $(stat -c %s /tmp/big) -le 1048576 ] && echo limited`)
	c.Sandbox.Limits.TmpBytes = 1 << 20
	expect(t, c, result{Out: "x\nlimited\n"})
}

func TestHiddenPathsCannotBeRead(t *testing.T) {
	t.Parallel()
	c := in(t, executor.Off, `cat secret/key file link 2>&1 | grep -c -i -E 'denied|no such'; grep -r SEKRET . 2>/dev/null
cat /proc/1/environ /proc/1/root/etc/hostname 2>/dev/null; mv secret other 2>/dev/null; rm -rf secret 2>/dev/null; cat other/key 2>/dev/null`)
	dir := filepath.Join(c.Dir, "secret")
	must.Do(t, os.Mkdir(dir, 0o700))
	for _, f := range []string{"secret/key", "file"} {
		must.Do(t, os.WriteFile(filepath.Join(c.Dir, f), []byte("SEKRET"), 0o600))
	}
	must.Do(t, os.Symlink("secret/key", filepath.Join(c.Dir, "link")))
	c.Sandbox.Hide = []string{dir, filepath.Join(c.Dir, "file"), filepath.Join(c.Dir, "missing"), "/nonexistent/a"}
	got, _ := run(t, c)
	if strings.Contains(got.Out, "SEKRET") || !strings.HasPrefix(got.Out, "3\n") {
		t.Errorf("got %q", got.Out)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "key")); err != nil || string(b) != "SEKRET" {
		t.Errorf("the hidden file holds %q, %v", b, err)
	}
}

func TestNetworkIsOffUnlessAsked(t *testing.T) {
	t.Parallel()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	// Ends when the listener is closed.
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	script := fmt.Sprintf(`(exec 3<>/dev/tcp/127.0.0.1/%d) 2>/dev/null && echo reached; grep -c . /proc/net/dev`, l.Addr().(*net.TCPAddr).Port)
	c := in(t, executor.Off, script)
	expect(t, c, result{Out: "3\n"}) // two lines of head, and lo
	c.Sandbox.Network = true
	got, e := run(t, c)
	if !strings.HasPrefix(got.Out, "reached\n") || !e.Sandbox.Network {
		t.Errorf("with the host's network: %+v", got)
	}
}

func TestLoopbackWorksInside(t *testing.T) {
	t.Parallel()
	expect(t, in(t, executor.Off, `(exec 3<>/dev/tcp/127.0.0.1/9) 2>&1 | grep -o -m1 'Connection refused' | head -1`), result{Out: "Connection refused\n"})
}

func TestNoPrivilegeIsLeft(t *testing.T) {
	t.Parallel()
	for _, mode := range terminals {
		c := in(t, mode, `grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status
unshare -U true 2>/dev/null && echo userns; unshare -m true 2>/dev/null && echo mountns
mount -t tmpfs none /tmp 2>/dev/null && echo mounted; umount /proc 2>/dev/null && echo unmounted
chroot / true 2>/dev/null && echo chroot; kill -0 -- -1 2>/dev/null; ls -d /proc/[0-9]* | wc -l | grep -E -q '^[1-9]$' && echo few`)
		expect(t, c, result{Out: `CapInh:	0000000000000000
CapPrm:	0000000000000000
CapEff:	0000000000000000
CapBnd:	0000000000000000
CapAmb:	0000000000000000
NoNewPrivs:	1
Seccomp:	2
few
`})
	}
}

// Linux has capabilities and restrictions per thread; the shell is forked from
// one, the others keep watch.
func TestHelpersOtherThreadsHoldNoCapability(t *testing.T) {
	t.Parallel()
	c := in(t, executor.Off, `echo ready; read x`)
	caps := make(chan string, 1)
	c.Stdin = true
	input := make(chan executor.Input, 1)
	c.Input = input
	c.Started = func(s executor.Started) {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", s.PID))
		var held []string
		for _, f := range tasks {
			b, _ := os.ReadFile(f)
			for line := range strings.Lines(string(b)) {
				if strings.HasPrefix(line, "CapEff") || strings.HasPrefix(line, "CapPrm") {
					held = append(held, strings.TrimSpace(strings.SplitN(line, ":", 2)[1]))
				}
			}
		}
		caps <- strings.Trim(strings.Join(held, ""), "0")
		if len(held) < 4 {
			caps <- fmt.Sprintf("only %d lines for %d threads", len(held), len(tasks))
		}
		input <- executor.Input{Data: []byte("\n")}
	}
	run(t, c)
	if held := <-caps; held != "" {
		t.Errorf("capabilities of the helper's threads: %s", held)
	}
}

func TestReportTellsWhatHeld(t *testing.T) {
	t.Parallel()
	c := in(t, executor.Off, "true")
	_, e := run(t, c)
	r := e.Sandbox
	if r.Profile != "workspace-write" || r.Network || r.Tier != "A" || len(r.Enforced) != 4 ||
		r.Enforced[0] != "namespaces" || !strings.HasPrefix(r.Enforced[1], "landlock:") || r.Enforced[2] != "seccomp" {
		t.Errorf("got %+v", r)
	}
	c.Sandbox = sandbox.Profile{Mode: sandbox.FullAccess}
	_, e = run(t, c)
	must.Match(t, sandbox.Report{Profile: "danger-full-access", Enforced: []string{}, Network: true, Tier: "none"}, e.Sandbox)
}

func TestWhatCannotBeConfinedDoesNotRun(t *testing.T) {
	t.Parallel()
	c := in(t, executor.Off, "touch ran")
	link := filepath.Join(t.TempDir(), "link")
	must.Do(t, os.Symlink("/etc", link))
	for name, p := range map[string]sandbox.Profile{
		"everything writable": {Mode: sandbox.WorkspaceWrite, Workspace: "/"},
		"no workspace":        {Mode: sandbox.WorkspaceWrite},
		"relative workspace":  {Mode: sandbox.WorkspaceWrite, Workspace: "x"},
		"missing root":        {Mode: sandbox.WorkspaceWrite, Workspace: c.Dir, Write: []string{c.Dir + "/none"}},
		"root that is a link": {Mode: sandbox.WorkspaceWrite, Workspace: c.Dir, Write: []string{link}},
		"writable /proc":      {Mode: sandbox.WorkspaceWrite, Workspace: c.Dir, Write: []string{"/proc/sys"}},
		"unknown profile":     {Mode: 9, Workspace: c.Dir},
	} {
		bad := c
		bad.Sandbox = p
		_, err := executor.Run(t.Context(), bad)
		var stage *sandbox.StageError
		if !errors.Is(err, sandbox.ErrUnavailable) || !errors.As(err, &stage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(c.Dir, "ran")); err == nil {
		t.Error("it ran")
	}
}

// The limit of root is one of process numbers, some of which are used only once.
// bash would try for 15 s to fork; dash does not.
func TestProcessLimitStopsAForkBomb(t *testing.T) {
	t.Parallel()
	limit := 40
	if os.Getuid() == 0 {
		requireLinux(t, 6, 14)
		limit += 364
	}
	c := in(t, executor.Off, `exec sh -c 'for i in $(seq 1000); do sleep 1000 & done'`)
	c.Sandbox.Limits.Processes = 40
	_, e := run(t, c)
	if n := len(e.Leftovers); n == 0 || n > limit || e.Code == 0 || e.Limit != "processes" {
		t.Errorf("%d processes, exit %d, limit %q", n, e.Code, e.Limit)
	}
}

// A script that is quicker than whoever would limit it from outside. The limits
// are above what the sandbox itself needs, and below what is usual.
func TestLimitsHoldFromTheFirstInstruction(t *testing.T) {
	t.Parallel()
	for _, mode := range terminals {
		c := in(t, mode, `echo $(ulimit -Sn; ulimit -Hn; ulimit -Su; ulimit -Hu)`)
		c.Sandbox.Limits.OpenFiles, c.Sandbox.Limits.Processes = 77, 99
		for range 3 {
			expect(t, c, result{Out: "77 77 99 99\n"})
		}
		c.Sandbox.Mode = sandbox.FullAccess
		c.Script = `echo $(ulimit -Sn; ulimit -Hn)`
		expect(t, c, result{Out: "77 77\n"})
	}
}

// The kernel counts these per user, also across user namespaces. Without pending signals no Go
// program of the user starts, and the next call would wait for its sandbox for ever.
func TestACallLeavesTheUserPendingSignalsAndMessageQueues(t *testing.T) {
	t.Parallel()
	for _, mode := range []sandbox.Mode{sandbox.ReadOnly, sandbox.WorkspaceWrite, sandbox.FullAccess} {
		c := in(t, executor.Off, `test $(ulimit -Hi) -le 1024 && test $(ulimit -Hq) -le 131072 && echo few`)
		c.Sandbox.Mode = mode
		expect(t, c, result{Out: "few\n"})
	}
}

// With fewer the helper could not watch what it holds.
func TestTooFewOpenFilesAreRefused(t *testing.T) {
	t.Parallel()
	for _, profile := range profiles {
		c := in(t, executor.Off, `touch ran`)
		c.Sandbox.Mode, c.Sandbox.Limits.OpenFiles = profile, 10
		_, err := executor.Run(t.Context(), c)
		if !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(err.Error(), "limit open files") {
			t.Errorf("got %v", err)
		}
		if _, err := os.Stat(filepath.Join(c.Dir, "ran")); err == nil {
			t.Error("it ran")
		}
	}
}

func TestProcessLimitCountsOnlyThoseThatRun(t *testing.T) {
	t.Parallel()
	c := in(t, executor.Off, `for i in $(seq 450); do /bin/true || exit; done; echo all`)
	c.Sandbox.Limits.Processes = 40
	expect(t, c, result{Out: "all\n"})
}

// requireLinux skips a test where the kernel is older.
func requireLinux(t *testing.T, major, minor int) {
	t.Helper()
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	var m, n int
	if _, scanErr := fmt.Sscanf(string(release), "%d.%d", &m, &n); err != nil || scanErr != nil || m < major || m == major && n < minor {
		t.Skipf("needs Linux %d.%d, this is %s", major, minor, release)
	}
}

// Memory counts whether the shell has it or what it starts, and where no table of open files of
// the call shows it. Page tables are memory too: one for every two MiB of which a byte is read.
// Shared memory that no table shows is what the machine has more of since the call began, unless
// another call ends meanwhile: these run one after the other.
func TestMemoryLimitEndsTheCall(t *testing.T) {
	t.Parallel()
	requireProgram(t, "python3")
	for name, script := range map[string]string{
		"of the shell": "",
		// The kernel shows it with the other threads.
		"behind an ended main thread": `def one():
    while "Z (zombie)" not in open("/proc/%d/status" % os.getpid()).read():
        pass
    x = b"x" * 300000000
    time.sleep(20)
threading.Thread(target=one).start()
libc.syscall(60 if os.uname().machine == "x86_64" else 93, 0) # exit(2)`,
		"page tables": `m = mmap.mmap(-1, 1 << 39, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, prot=mmap.PROT_READ)
for at in range(0, 1 << 38, 1 << 21):
    m[at]`,
		"semaphores": `for n in range(200):
    assert libc.semget(0, 32000, 0o600) >= 0`,
		"messages": `message = ctypes.create_string_buffer(b"1234567", 8)
for n in range(400):
    queue = libc.msgget(0, 0o600)
    for m in range(16384):
        assert libc.msgsnd(queue, message, 0, 0o4000) == 0`,
		"shared, not dumpable": `libc.prctl(4, 0)
fill(300)`,
		"shared, in a socket": `a, b = socket.socketpair()
for n in range(60):
    fd = fill(5)
    socket.send_fds(a, [b"x"], [fd])
    os.close(fd)`,
		"shared, of one thread": `def one():
    libc.unshare(0x400)
    fill(300)
    time.sleep(20)
threading.Thread(target=one).start()`,
		"shared, hardly mapped": `for n in range(60):
    fd = fill(5)
    libc.mmap(None, 4096, 3, 1, fd, 0)
    os.close(fd)`,
		"shared, hardly left": `for n in range(30):
    at = libc.mmap(None, 10 << 20, 3, 0x21, -1, 0)
    ctypes.memset(at, 1, 10 << 20)
    libc.munmap(at + 4096, (10 << 20) - 4096)`,
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.HasPrefix(name, "shared") {
				t.Parallel()
			}
			c := in(t, executor.Off, `x=$(head -c 300000000 /dev/zero | tr '\0' x); echo ${#x}; sleep 1000`)
			if script != "" {
				c.Script = "cat >fill.py <<'END'\n" + `import ctypes, mmap, os, socket, threading, time
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
def fill(mib):
    fd = os.memfd_create("x")
    for n in range(mib):
        os.write(fd, bytes(1 << 20))
    return fd
` + script + "\ntime.sleep(20)\nEND\npython3 fill.py"
			}
			c.Sandbox.Limits.MemoryBytes = 200 << 20
			got, e := run(t, c)
			if diff := cmp.Diff(result{Code: 137, Signal: "SIGKILL"}, got); diff != "" || e.Limit != "memory" {
				t.Errorf("limit %q %s", e.Limit, diff)
			}
		})
	}
}

func TestFileLimitHolds(t *testing.T) {
	t.Parallel()
	c := in(t, executor.Off, `head -c 5000 /dev/zero >f; stat -c %s f`)
	c.Sandbox.Limits.FileBytes = 1000
	got, _ := run(t, c)
	if got.Out != "1000\n" {
		t.Errorf("got %+v", got)
	}
}

func TestTerminalInjectionIsRefused(t *testing.T) {
	t.Parallel()
	requireProgram(t, "python3")
	c := in(t, executor.Single, `python3 -c '
import fcntl
for request in (0x5412, 0x5412 | 1 << 32):
    try:
        fcntl.ioctl(0, request, b"x")
        print("injected")
    except (OSError, OverflowError):
        print("refused")'`)
	expect(t, c, result{Out: "refused\nrefused\n"})
}
