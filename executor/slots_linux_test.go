package executor_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/caches"
	"github.com/toold/toold/sandbox/launch"
)

func inSlot(t *testing.T, p *executor.Pool, c executor.Command) (printed string, helper int) {
	t.Helper()
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	c.Started = func(s executor.Started) { helper = s.PID }
	must.Get(p.Run(t.Context(), c))(t)
	return out.String(), helper
}

// again runs first, and then second in the same helper: as often as it takes until the helper
// can hold it.
func again(t *testing.T, first, second executor.Command) (printed string) {
	t.Helper()
	p := executor.NewPool(0, nil)
	defer p.Close()
	for {
		_, one := inSlot(t, p, first)
		for p.Idle() == 0 && lives(one) {
			runtime.Gosched()
		}
		printed, two := inSlot(t, p, second)
		if one == two {
			return printed
		}
	}
}

func lives(pid int) bool { return !errors.Is(unix.Kill(pid, 0), unix.ESRCH) }

func awaitEnd(t *testing.T, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		if n == 1 {
			return
		}
		if !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
	}
}

const networkTraces = `echo "tcp: $(tail -qn +2 /proc/net/tcp /proc/net/tcp6 | wc -l)"
echo "unix: $(tail -n +2 /proc/net/unix | wc -l)"
`

const traces = `echo "tmp: $(ls -A /tmp /var/tmp /dev/shm /run 2>/dev/null | tr '\n' ' ')"
echo "processes: $(cat /proc/[0-9]*/comm 2>/dev/null | grep -cx sleep)"
echo "mounts: $(wc -l </proc/self/mountinfo)"
echo "umask: $(umask)"
echo "limits: $(ulimit -a | cksum)"
echo "nice: $(nice)"
echo "descriptors: $(ls /proc/self/fd | wc -l)"
echo "cwd: $PWD"
grep -E '^(Cap|Sig[BIC]|NoNew|Seccomp:|Cpus)' /proc/self/status
for kind in uts ipc net mnt user cgroup; do readlink /proc/self/ns/$kind; done | wc -l
env | sort
`

func TestACallSeesNothingOfTheOneThatUsedItsSandboxBefore(t *testing.T) {
	t.Parallel()
	for _, mode := range terminals {
		seesNothing(t, in(t, mode, networkTraces+traces))
		machines := in(t, mode, traces)
		machines.Sandbox.Network = true
		seesNothing(t, machines)
	}
}

func seesNothing(t *testing.T, c executor.Command) {
	t.Helper()
	before := c
	before.Script = `mkdir /tmp/d; echo secret | tee /tmp/d/f /var/tmp/f /dev/shm/f >/dev/null
cd /tmp; umask 077; ulimit -n 64; renice 5 $$ >/dev/null; export LEFT=x
trap '' INT TERM HUP
(setsid sleep 1000 >/dev/null 2>&1 </dev/null &) ; nohup sleep 1000 >/dev/null 2>&1 </dev/null &
stty -echo 2>/dev/null; true`
	fresh, _ := run(t, c)
	got := again(t, before, c)
	// Where a workspace below /tmp is, the way to it is there.
	if diff := cmp.Diff(fresh.Out+fresh.Err, got); diff != "" {
		t.Errorf("%s, network %t: (-fresh +again)\n%s", c.Terminal, c.Sandbox.Network, diff)
	}
}

const unconfinedTraces = `echo "umask: $(umask)"
echo "limits: $(ulimit -a | cksum)"
echo "nice: $(nice), $(cat /proc/self/oom_score_adj)"
echo "descriptors: $(ls /proc/self/fd | wc -l)"
echo "cwd: $PWD"
grep -E '^(Cap|Sig[BIC]|NoNew|Seccomp:|Cpus)' /proc/self/status
env | grep -v ^TOOLD_CALL= | sort
stty -a 2>&1 </dev/tty
pgrep -fx "sleep $LEFT" | wc -l
`

func TestAnUnconfinedCallSeesNothingOfTheOneBefore(t *testing.T) {
	t.Parallel()
	for _, mode := range terminals {
		left := mark(t)
		c := inFIFO(t, mode, sandbox.FullAccess, strings.ReplaceAll(unconfinedTraces, "$LEFT", left))
		before := c
		before.Script = `cd /tmp; umask 077; ulimit -n 64; renice 5 $$ >/dev/null; export LEFT=x
trap '' INT TERM HUP
(setsid sleep ` + left + ` >/dev/null 2>&1 </dev/null &) ; nohup sleep ` + left + ` >/dev/null 2>&1 </dev/null &
stty -echo 2>/dev/null </dev/tty; true`
		fresh, _ := run(t, c)
		got := again(t, before, c)
		if diff := cmp.Diff(fresh.Out+fresh.Err, got); diff != "" {
			t.Errorf("%s: (-fresh +again)\n%s", mode, diff)
		}
	}
}

// What an unconfined call does to its helper, another call of the user could do to the daemon. Still the next one runs.
func TestAnUnconfinedCallRunsWhateverWasDoneToTheHelper(t *testing.T) {
	t.Parallel()
	for _, harm := range []string{
		"echo 600 >/proc/$PPID/oom_score_adj", "renice -n 19 -p $PPID >/dev/null", "prlimit --pid $PPID --nofile=1000",
		"chrt -b -p 0 $PPID", "ionice -c 3 -p $PPID", "taskset -p -c $(tail -c2 <(taskset -cp $PPID)) $PPID", "kill -HUP $PPID; kill -TERM $PPID",
		"kill -KILL $PPID",
	} {
		p := executor.NewPool(0, nil)
		inSlot(t, p, inFIFO(t, executor.Off, sandbox.FullAccess, harm))
		c := inFIFO(t, executor.Off, sandbox.FullAccess, "cat /proc/self/oom_score_adj; nice; ionice; ulimit -n; chrt -p $$ | cut -d: -f2; taskset -p $$ | cut -d: -f2")
		got, helper := inSlot(t, p, c)
		if want, _ := run(t, c); got != want.Out {
			t.Errorf("%s: got %q, want %q", harm, got, want.Out)
		}
		for p.Idle() == 0 && lives(helper) {
			runtime.Gosched()
		}
		if p.Idle() > 0 {
			must.Do(t, unix.Kill(helper, unix.SIGSTOP))
			if got, _ := inSlot(t, p, inFIFO(t, executor.Off, sandbox.FullAccess, "echo alive")); got != "alive\n" {
				t.Errorf("%s: a helper that was stopped: got %q", harm, got)
			}
		}
		p.Close()
	}
}

func TestACallCannotChangeTheHelperThatHoldsTheNextOne(t *testing.T) {
	t.Parallel()
	requireProgram(t, "python3")
	before := in(t, executor.Off, `renice -n 19 -p 1; chrt -b -p 0 1; taskset -p 1 1; prlimit --pid 1 --nofile=10:10; ionice -c 3 -p 1
kill -STOP 1; kill -TERM 1; kill -KILL 1; kill -HUP 1; kill -USR1 1
python3 - <<'END'
import os, resource
for name, change in {
    "nice": lambda t: os.setpriority(os.PRIO_PROCESS, t, 19),
    "scheduler": lambda t: os.sched_setscheduler(t, os.SCHED_BATCH, os.sched_param(0)),
    "affinity": lambda t: os.sched_setaffinity(t, {0}),
    "limit": lambda t: resource.prlimit(t, resource.RLIMIT_FSIZE, (1, 1)),
}.items():
    for thread in os.listdir("/proc/1/task"):
        try:
            change(int(thread))
            print("changed", name, thread) # of a thread that has just begun: then the helper holds no other call
        except OSError:
            pass
for path in ("mem", "environ", "maps", "root", "cwd", "fd/0"):
    try:
        os.readlink("/proc/1/" + path) if path in ("root", "cwd", "fd/0") else open("/proc/1/" + path).read(1)
        print("read", path)
    except OSError:
        pass
END
`)
	p := executor.NewPool(0, nil)
	defer p.Close()
	if got, _ := inSlot(t, p, before); strings.Contains(got, "read ") {
		t.Errorf("got %q", got)
	}
	if got := again(t, before, before); strings.Contains(got, "changed ") || strings.Contains(got, "read ") {
		t.Errorf("as the second call, got %q", got)
	}
	c := before
	c.Script = "ulimit -a; nice; grep -E 'Cpus_allowed:|State' /proc/1/status; head -c 100 /dev/zero >f; stat -c %s f"
	fresh, _ := run(t, c)
	if diff := cmp.Diff(fresh.Out+fresh.Err, again(t, before, c)); diff != "" {
		t.Errorf("(-fresh +again)\n%s", diff)
	}
}

func TestASandboxInWhichSomethingIsLeftIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	requireProgram(t, "python3")
	for name, script := range map[string]string{
		"a segment of System V":        `import ctypes; print(ctypes.CDLL(None).shmget(0, 4096, 0o1600) >= 0)`,
		"semaphores":                   `import ctypes; print(ctypes.CDLL(None).semget(0, 1, 0o1600) >= 0)`,
		"a queue of System V":          `import ctypes; print(ctypes.CDLL(None).msgget(0, 0o1600) >= 0)`,
		"a connection that was closed": connectionThatWaits,
		"the weight of the session":    `import os; os.system("until echo 19 >>/proc/self/autogroup; do :; done 2>/dev/null"); print(True)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat("/proc/self/autogroup"); err != nil && strings.Contains(script, "autogroup") {
				t.Skip("the kernel has none")
			}
			p := executor.NewPool(0, nil)
			defer p.Close()
			got, helper := inSlot(t, p, in(t, executor.Off, "python3 -c '"+script+"'"))
			if got != "True\n" {
				t.Fatalf("got %q", got)
			}
			awaitEnd(t, helper)
		})
	}
}

// connectionThatWaits leaves a connection in TIME_WAIT: who closes first has to wait (RFC 9293).
const connectionThatWaits = `
import socket
s = socket.create_server(("127.0.0.1", 0))
c = socket.create_connection(s.getsockname())
d, _ = s.accept()
c.shutdown(socket.SHUT_WR); print(d.recv(1) == b""); d.close(); c.recv(1)
`

// What cannot be seen afterwards must not be possible.
func TestACallMakesNoMessageQueue(t *testing.T) {
	t.Parallel()
	requireProgram(t, "python3")
	c := in(t, executor.Off, `python3 -c '
import ctypes, os
c = ctypes.CDLL(None, use_errno=True)
for more in (0, os.O_EXCL):
    print(c.mq_open(b"/q", os.O_CREAT | os.O_RDWR | more, 0o600, None), os.strerror(ctypes.get_errno()))'`)
	const refused = "-1 Operation not permitted\n"
	expect(t, c, result{Out: refused + refused})
}

func TestACallLeavesNoDescriptorInItsHelper(t *testing.T) {
	t.Parallel()
	c := in(t, executor.Off, "true")
	set := must.Get(caches.Open(t.Context(), launch.Overlays, t.TempDir(), []caches.Cache{{Path: t.TempDir()}}))(t)
	defer set.Close()
	c.Sandbox.Caches = set
	p := executor.NewPool(0, nil)
	defer p.Close()
	open := map[int][]int{} // by helper
	for range 8 {
		_, helper := inSlot(t, p, c)
		for p.Idle() == 0 && lives(helper) {
			runtime.Gosched()
		}
		fds, err := os.ReadDir("/proc/" + strconv.Itoa(helper) + "/fd")
		if err == nil {
			open[helper] = append(open[helper], len(fds))
		}
	}
	for helper, counts := range open {
		// The runtime opens some of its own, once.
		if last := len(counts) - 1; last > 1 && counts[last] > counts[1] {
			t.Errorf("helper %d had %v descriptors after its calls", helper, counts)
		}
	}
}

func TestAHelperServesOnlyCommandsOfItsKind(t *testing.T) {
	t.Parallel()
	const script = "echo $(ulimit -n) $(grep -c : /proc/net/dev) $(grep Seccomp: /proc/self/status)"
	usual := in(t, executor.Off, script)
	limited, network, unconfined := usual, usual, usual
	limited.Sandbox.Limits.OpenFiles = 100
	network.Sandbox.Network = true
	unconfined.Sandbox.Mode = sandbox.FullAccess
	kinds := []executor.Command{usual, limited, network, unconfined}
	var fresh []string
	for _, c := range kinds {
		got, _ := run(t, c)
		fresh = append(fresh, got.Out)
	}
	p := executor.NewPool(0, nil)
	defer p.Close()
	of := map[int]int{} // kind by helper
	for range 5 {
		for kind, c := range kinds {
			got, helper := inSlot(t, p, c)
			if was, used := of[helper]; used && was != kind || got != fresh[kind] {
				t.Errorf("kind %d, in a helper of kind %d: got %q, alone %q", kind, was, got, fresh[kind])
			}
			of[helper] = kind
		}
	}
}

// The sockets of a helper's network serve each of its calls until one uses the network.
func TestConnectionsAreThoseOfTheCallThatMakesThem(t *testing.T) {
	t.Parallel()
	quiet, connects := in(t, executor.Off, "true"), in(t, executor.Off, "cat </dev/tcp/192.0.2.1/443")
	for _, c := range []*executor.Command{&quiet, &connects} {
		c.Sandbox.Ports = []uint16{443}
	}
	quiet.Connect = func(ctx context.Context, _ net.PacketConn, _ []net.Listener) { <-ctx.Done() }
	connects.Connect = func(ctx context.Context, _ net.PacketConn, ports []net.Listener) {
		stop := context.AfterFunc(ctx, func() { ports[0].Close() })
		defer stop()
		if conn, err := ports[0].Accept(); err == nil {
			_, _ = io.WriteString(conn, conn.LocalAddr().String())
			conn.Close()
		}
	}
	if got := again(t, quiet, connects); got != "192.0.2.1:443" {
		t.Errorf("got %q", got)
	}
	p := executor.NewPool(0, nil)
	defer p.Close()
	_, one := inSlot(t, p, connects)
	if got, two := inSlot(t, p, connects); one == two || got != "192.0.2.1:443" {
		t.Errorf("helpers %d and %d: got %q", one, two, got)
	}
}

// What the pool keeps is a child of this process: goleak of TestMain does not see it.
func TestSandboxesThatWaitEndWithThePoolAndWhenCallsRest(t *testing.T) {
	t.Parallel()
	c := in(t, executor.Off, "true")
	for _, closed := range []bool{true, false} {
		p := executor.NewPool(0, nil)
		_, helper := inSlot(t, p, c)
		if closed {
			p.Close()
			if _, err := os.Stat("/proc/" + strconv.Itoa(helper)); err == nil {
				t.Error("a helper outlives its pool")
			}
			continue
		}
		awaitEnd(t, helper)
		p.Close()
	}
}
