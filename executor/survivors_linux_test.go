package executor_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/caches"
	"github.com/toold/toold/sandbox/launch"
)

// tree starts a process of every kind that outlives its shell. Each has mark in its command
// line and holds the FIFO "life" open.
func tree(mark string) string {
	return strings.ReplaceAll(`exec 9<>life
sleep MARK &
(set -m; sleep MARK &)
setsid sleep MARK &
(setsid bash -c 'sleep MARK & exit' &)
nohup setsid sleep MARK >/dev/null 2>&1 &
env -i setsid sleep MARK &
bash -c 'trap "" TERM HUP INT; (setsid sleep MARK &) ; sleep MARK' &
while ! [ "$(pgrep -fxc 'sleep MARK')" -ge 8 ]; do :; done
echo ready
`, "MARK", mark)
}

// foundTree is tree without the process that an unconfined call can hide by
// killing its helper: no session of the call, nothing in its environment.
func foundTree(mark string) string {
	return strings.Replace(tree(mark), "env -i setsid", "setsid", 1)
}

func mark(t *testing.T) string {
	t.Helper()
	requireProgram(t, "pgrep")
	return fmt.Sprintf("7%09d.%d", time.Now().UnixNano()%1e9, os.Getpid())
}

func inFIFO(t *testing.T, mode executor.Terminal, profile sandbox.Mode, script string) executor.Command {
	t.Helper()
	c := in(t, mode, script)
	c.Sandbox.Mode = profile
	c.Grace = 100 * time.Millisecond
	must.Do(t, syscall.Mkfifo(filepath.Join(c.Dir, "life"), 0o600))
	return c
}

func TestNothingSurvivesTheEnd(t *testing.T) {
	t.Parallel()
	for _, profile := range profiles {
		for _, mode := range terminals {
			m := mark(t)
			_, e := run(t, inFIFO(t, mode, profile, tree(m)))
			if n := running(t, m); n != 0 {
				t.Errorf("%s %s: %d processes survived", profile, mode, n)
			}
			if len(e.Leftovers) < 8 {
				t.Errorf("%s %s: leftovers are %v", profile, mode, e.Leftovers)
			}
		}
	}
}

func TestNothingSurvivesACancel(t *testing.T) {
	t.Parallel()
	for _, profile := range profiles {
		for _, mode := range terminals {
			m := mark(t)
			got, err := stopWhenReady(t, inFIFO(t, mode, profile, tree(m)+"sleep "+m))
			if n := running(t, m); n != 0 || err != nil {
				t.Errorf("%s %s: %d processes survived (%v)", profile, mode, n, err)
			}
			if got.Reason != executor.Stopped {
				t.Errorf("%s %s: got %+v", profile, mode, got)
			}
		}
	}
}

func TestNothingSurvivesATimeout(t *testing.T) {
	t.Parallel()
	for _, profile := range profiles {
		m := mark(t)
		timesOut(t, m, inFIFO(t, executor.Split, profile, tree(m)+"sleep "+m))
	}
	m := mark(t) // of one that stops its helper too
	timesOut(t, m, inFIFO(t, executor.Off, sandbox.FullAccess, tree(m)+"kill -STOP $PPID; sleep "+m))
}

// timesOut runs a command that prints "ready" until its timeout, after which no process with
// mark may be left.
func timesOut(t *testing.T, mark string, c executor.Command) {
	t.Helper()
	for c.Timeout = 300 * time.Millisecond; c.Timeout < 5*time.Minute; c.Timeout *= 2 {
		got, _ := run(t, c)
		if n := running(t, mark); n != 0 || got.Reason != executor.TimedOut {
			t.Errorf("%s: %d processes survived, %+v", c.Sandbox.Mode, n, got)
		}
		if strings.Contains(got.Out, "ready") {
			return
		}
	}
	t.Errorf("%s: the command is never ready", c.Sandbox.Mode)
}

// leaderless starts a process whose main thread ends and whose other one sleeps: the kernel
// shows it as a zombie. It has no session of the call and holds the FIFO "life" open.
const leaderless = `exec 9<>life
setsid python3 -c '
import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(1000,)).start()
print("ready", flush=True)
ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)' & # exit(2)
until grep -q '^State:.Z' /proc/$!/status; do :; done
`

func TestAProcessWithoutItsMainThreadDoesNotSurvive(t *testing.T) {
	t.Parallel()
	requireProgram(t, "python3")
	for _, profile := range profiles {
		c := inFIFO(t, executor.Off, profile, leaderless)
		_, e := run(t, c)
		if len(e.Leftovers) != 1 || e.Stuck {
			t.Errorf("%s: leftovers are %v, stuck: %v", profile, e.Leftovers, e.Stuck)
		}
		noLife(t, c)
		c.Script += "kill -9 $PPID; sleep 1000"
		if profile == sandbox.FullAccess {
			run(t, c)
			noLife(t, c)
		}
	}
}

// noLife fails if a process still has the FIFO of a call.
func noLife(t *testing.T, c executor.Command) {
	t.Helper()
	life := must.Get(os.OpenFile(filepath.Join(c.Dir, "life"), os.O_RDONLY|syscall.O_NONBLOCK, 0))(t)
	defer life.Close()
	raw := must.Get(life.SyscallConn())(t)
	_ = raw.Control(func(fd uintptr) {
		if n, err := unix.Read(int(fd), make([]byte, 1)); n != 0 || err != nil {
			t.Errorf("%s: a process survived: read %d, %v", c.Sandbox.Mode, n, err)
		}
	})
}

// Each generation forks, starts a session and exits: a killer that reads the
// process table once never sees the one that is alive.
func TestMovingTargetIsHit(t *testing.T) {
	t.Parallel()
	for _, profile := range profiles {
		m := mark(t)
		c := inFIFO(t, executor.Off, profile, "bash ./hop "+m+"; echo ready; sleep 1000")
		hop := []byte("setsid bash ./hop \"$1\" &\n")
		must.Do(t, os.WriteFile(filepath.Join(c.Dir, "hop"), hop, 0o600))
		must.Get(stopWhenReady(t, c))(t)
		if n := running(t, m); n != 0 {
			t.Errorf("%s: %d processes survived", profile, n)
		}
	}
}

func TestCommandThatKillsItsHelperTakesAllWithIt(t *testing.T) {
	t.Parallel()
	m := mark(t)
	kill := "kill -9 $PPID; sleep " + m
	got, _ := run(t, inFIFO(t, executor.Split, sandbox.FullAccess, foundTree(m)+kill))
	if n := running(t, m); n != 0 {
		t.Errorf("%d processes survived", n)
	}
	if got.Signal != "SIGKILL" || got.Code != 137 {
		t.Errorf("got %+v", got)
	}
}

// From the first moment on: the helper is not yet back from the fork when a
// quick command sends its first signal.
func TestHelperInANamespaceIsOutOfReach(t *testing.T) {
	must.Long(t)
	t.Parallel()
	for _, mode := range terminals {
		for _, sig := range []string{"KILL", "TERM", "SEGV", "STOP", "HUP", "QUIT"} {
			for range 2 {
				expect(t, in(t, mode, "kill -"+sig+" 1 2>/dev/null; echo alive"), result{Out: "alive\n"})
			}
		}
	}
}

func TestKillZeroReachesOnlyTheCommand(t *testing.T) {
	t.Parallel()
	for c := range everywhere(t, "echo before; kill -9 0") {
		expect(t, c, result{Out: "before\n", Code: 137, Signal: "SIGKILL"})
	}
}

func TestKilledHelperLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, profile := range profiles {
		m := mark(t)
		c := inFIFO(t, executor.Split, profile, foundTree(m)+"sleep "+m)
		out := listenFor("ready")
		c.Stdout = out
		helper := make(chan executor.Started, 1)
		c.Started = func(s executor.Started) { helper <- s }
		killed := make(chan error, 1)
		// Ends when the command is ready or the test is over.
		go func() {
			select {
			case <-out.come:
			case <-t.Context().Done():
			}
			ok, err := executor.KillIdentity((<-helper).Identity)
			if err == nil && !ok {
				err = errors.New("there was nothing to kill")
			}
			killed <- err
		}()
		_, e := run(t, c)
		if err := <-killed; err != nil {
			t.Error(err)
		}
		if n := running(t, m); n != 0 || e.Signal != "SIGKILL" || !e.Lost {
			t.Errorf("%s: %d processes survived, %+v", profile, n, e)
		}
	}
}

func TestIdentityOfAnotherProcessIsLeftAlone(t *testing.T) {
	t.Parallel()
	var mine string
	c := in(t, executor.Off, "true")
	c.Started = func(s executor.Started) { mine = s.Identity }
	run(t, c)
	if killed, err := executor.KillIdentity(mine); killed || err != nil {
		t.Errorf("an ended helper: %v, %v", killed, err)
	}
	boot := mine[strings.LastIndexByte(mine, ':'):]
	reused := fmt.Sprintf("%d:1%s", os.Getpid(), boot)
	if killed, err := executor.KillIdentity(reused); killed || err != nil {
		t.Errorf("a reused number: %v, %v", killed, err)
	}
	for _, bad := range []string{"", "1:1:x", "a:b:c", "-5:1:x", "0:0:0"} {
		if killed, err := executor.KillIdentity(bad); killed || err == nil {
			t.Errorf("%q: %v, %v", bad, killed, err)
		}
	}
}

// A daemon that is killed leaves nobody to give orders: its helpers end by
// themselves. This binary plays the daemon.
func TestKilledDaemonLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, profile := range profiles {
		m := mark(t)
		c := inFIFO(t, executor.Split, profile, tree(m)+"sleep "+m)
		daemon := exec.CommandContext(t.Context(), "/proc/self/exe")
		daemon.Env = append(os.Environ(), "PLAY_DAEMON="+c.Dir, "PLAY_PROFILE="+profile.String(), "PLAY_SCRIPT="+c.Script)
		out := listenFor("ready")
		daemon.Stdout, daemon.Stderr = out, os.Stderr
		must.Do(t, daemon.Start())
		<-out.come
		life := must.Get(os.OpenFile(filepath.Join(c.Dir, "life"), os.O_RDONLY, 0))(t)
		defer life.Close()
		must.Do(t, daemon.Process.Kill())
		_ = daemon.Wait() // its end is our kill
		// The FIFO is at its end when the last process that holds it is gone.
		if n, err := life.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("read %d bytes: %v", n, err)
		}
		if n := running(t, "sleep\x00"+m); n != 0 {
			t.Errorf("%s: %d processes survived", profile, n)
		}
	}
}

// playDaemon runs one command and waits for it, as a daemon would.
func playDaemon(dir string) error {
	mode, err := sandbox.ParseMode(os.Getenv("PLAY_PROFILE"))
	if err != nil {
		return err
	}
	var set *caches.Set
	if cache := os.Getenv("PLAY_CACHE"); cache != "" {
		if set, err = caches.Open(context.Background(), launch.Overlays, os.Getenv("PLAY_STORE"), []caches.Cache{{Path: cache}}); err != nil {
			return err
		}
	}
	_, err = executor.Run(context.Background(), executor.Command{
		Script: os.Getenv("PLAY_SCRIPT"), Dir: dir, Env: []string{"PATH=" + os.Getenv("PATH")},
		Sandbox: sandbox.Profile{Mode: mode, Workspace: dir, Caches: set}, Stdout: os.Stdout, Stderr: os.Stderr,
	})
	return err
}

func TestMain(m *testing.M) {
	if dir := os.Getenv("PLAY_DAEMON"); dir != "" {
		if err := playDaemon(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if err := mountApart(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := waitSideBySide(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// waitSideBySide runs more tests at once than there are processors, unless -parallel says
// otherwise: most of them wait most of the time.
func waitSideBySide() error {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if chosen {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0)))
}

// mountApart begins the tests anew where no mount of another program shows, if root plays
// them: a shell that waited while one came is not used.
func mountApart() error {
	const done = "MOUNTED_APART"
	if os.Getuid() != 0 || os.Getenv(done) != "" {
		return os.Unsetenv(done)
	}
	runtime.LockOSThread() // for good: what follows is of this thread
	err := unix.Unshare(unix.CLONE_NEWNS)
	if errors.Is(err, unix.EPERM) { // root of a container that may not
		return nil
	}
	return errors.Join(err, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), os.Setenv(done, "1"), unix.Exec("/proc/self/exe", os.Args, os.Environ()))
}

// A process chooses its own command line, which people and models see among others.
func TestTheCommandLineOfALeftoverIsOneLine(t *testing.T) {
	t.Parallel()
	for _, profile := range profiles {
		c := inFIFO(t, executor.Off, profile, `(exec -a $'x\ny\e[2K\r' bash -c 'echo > life; sleep 1000; :') & read < life`)
		_, e := run(t, c)
		if len(e.Leftovers) == 0 {
			t.Errorf("%s: nothing was left", profile)
		}
		for _, p := range e.Leftovers {
			if strings.ContainsFunc(p.Command, unicode.IsControl) {
				t.Errorf("%s: %q", profile, p.Command)
			}
		}
	}
}
