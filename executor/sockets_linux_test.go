package executor_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
)

func python(t *testing.T, program string) string {
	t.Helper()
	requireProgram(t, "python3")
	return `cat >p.py <<'PROGRAM'
import errno, os, socket, threading
def try_(what, f):
    try:
        got = f()
        print(what, "ok" if got is None else got)
    except OSError as e:
        print(what, errno.errorcode[e.errno])
def stream(path):
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    return s
` + program + `
PROGRAM
python3 p.py`
}

// machineSocket listens as a program of the machine does, and tells how often it was
// connected to when the test asks.
func machineSocket(t *testing.T, path string) (visits func() int) {
	t.Helper()
	l := must.Get(net.Listen("unix", path))(t)
	var all sync.WaitGroup
	heard := 0
	// Ends when the listener is closed.
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			text := make([]byte, 100)
			if n, _ := c.Read(text); n > 0 {
				heard++
				c.Write([]byte("hello\n"))
			}
			c.Close()
		}
	})
	return func() int {
		l.Close()
		all.Wait()
		return heard
	}
}

func TestLocalSocketsWorkInside(t *testing.T) {
	t.Parallel()
	c := in(t, executor.Off, python(t, `
def serve(path, kind):
    l = socket.socket(socket.AF_UNIX, kind)
    l.bind(path)
    l.listen(8)
    def talk():
        s, _ = l.accept()
        s.send(s.recv(100))
        s.close()
    threading.Thread(target=talk, daemon=True).start()
def echo(path, kind, address=None):
    serve(path, kind)
    s = socket.socket(socket.AF_UNIX, kind)
    s.connect(address or path)
    s.send(b"hello")
    return s.recv(100).decode()
os.mkdir("d")
os.symlink("d", "link")
try_("workspace", lambda: echo(os.path.abspath("a"), socket.SOCK_STREAM))
try_("relative, through a link", lambda: echo("d/b", socket.SOCK_STREAM, "link/b"))
try_("packets", lambda: echo("d/c", socket.SOCK_SEQPACKET))
try_("tmp", lambda: echo("/tmp/s", socket.SOCK_STREAM))
try_("no path", lambda: echo("\0toold-test", socket.SOCK_STREAM))
try_("pair", lambda: socket.socketpair()[0].close())
try_("TCP", lambda: (lambda l: socket.create_connection(l.getsockname()).close())(socket.create_server(("127.0.0.1", 0))))
`))
	want := "workspace hello\nrelative, through a link hello\npackets hello\ntmp hello\nno path hello\npair ok\nTCP ok\n"
	expect(t, c, result{Out: want})
}

// What programs learn from a failed connect is what they would learn without a sandbox.
func TestConnectFailsAsItAlwaysDoes(t *testing.T) {
	t.Parallel()
	c := in(t, executor.Off, python(t, `
l = socket.socket(socket.AF_UNIX)
l.bind("stale")
l.listen(1)
l.close()
open("file", "w").close()
try_("stale", lambda: stream("stale"))
try_("missing", lambda: stream("missing"))
try_("file", lambda: stream("file"))
try_("twice", lambda: (lambda s: s.connect("live") or s.connect("live"))((lambda k: (k.bind("live"), k.listen(2), globals().update(kept=k)) and socket.socket(socket.AF_UNIX))(socket.socket(socket.AF_UNIX))))
try_("no socket", lambda: socket.socket(fileno=os.open("file", os.O_RDONLY)))
try_("closed port", lambda: socket.create_connection(("127.0.0.1", 1)))
s = socket.socket(); s.setblocking(False)
k = socket.create_server(("127.0.0.1", 0))
try_("later", lambda: s.connect(k.getsockname()))
`))
	want := "stale ECONNREFUSED\nmissing ENOENT\nfile ECONNREFUSED\ntwice EISCONN\nno socket ENOTSOCK\nclosed port ECONNREFUSED\nlater EINPROGRESS\n"
	expect(t, c, result{Out: want})
}

// A server that is slow to accept keeps its clients waiting and nobody else.
func TestAConnectThatWaitsHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	c := in(t, executor.Off, python(t, `
slow = socket.socket(socket.AF_UNIX); slow.bind("slow"); slow.listen(0)
quick = socket.socket(socket.AF_UNIX); quick.bind("quick"); quick.listen(5)
first = stream("slow")
done = []
waiting = threading.Thread(target=lambda: done.append(stream("slow")))
waiting.start()
impatient = socket.socket(socket.AF_UNIX)
impatient.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, b"\0" * 8 + (20000).to_bytes(8, "little"))
try_("impatient", lambda: impatient.connect("slow"))
try_("quick", lambda: stream("quick").close())
print("still waiting", not done)
slow.accept()
waiting.join()
print("connected", len(done))
`))
	want := "impatient EAGAIN\nquick ok\nstill waiting True\nconnected 1\n"
	expect(t, c, result{Out: want})
}

func TestSocketsOfTheMachineCannotBeReached(t *testing.T) {
	t.Parallel()
	outside := must.Get(filepath.EvalSymlinks(outsideTmp(t)))(t)
	c := in(t, executor.Off, python(t, `
where = os.environ["WHERE"]
try_("elsewhere", lambda: stream(where + "/s"))
try_("in the workspace", lambda: stream("machine"))
os.symlink(where + "/s", "link")
try_("link", lambda: stream("link"))
fd = os.open(where + "/s", os.O_PATH)
try_("descriptor", lambda: stream("/proc/self/fd/%d" % fd))
for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
    try_("datagrams", lambda: socket.socket(socket.AF_UNIX, kind))
    try_("datagram pair", lambda: socket.socketpair(socket.AF_UNIX, kind))
s = socket.socket(socket.AF_UNIX); s.setblocking(False)
try_("without waiting", lambda: s.connect("machine"))
try_("send", lambda: s.send(b"hello"))
`))
	c.Env = append(c.Env, "WHERE="+outside)
	elsewhere, inside := machineSocket(t, outside+"/s"), machineSocket(t, c.Dir+"/machine")
	want := "elsewhere EACCES\nin the workspace EACCES\nlink EACCES\ndescriptor ELOOP\n" +
		strings.Repeat("datagrams EPERM\ndatagram pair EPERM\n", 2) + "without waiting EACCES\nsend ENOTCONN\n"
	expect(t, c, result{Out: want})
	if a, b := elsewhere(), inside(); a+b != 0 {
		t.Errorf("%d and %d messages came", a, b)
	}
}

func TestListedSocketsCanBeReached(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		dir   string
		ports []uint16
	}{
		"hidden by the private folders":                     {t.TempDir(), nil},
		"hidden by the private folders, with hosts by name": {t.TempDir(), []uint16{443}},
		"elsewhere": {outsideTmp(t), nil},
	} {
		dir := must.Get(filepath.EvalSymlinks(x.dir))(t)
		c := in(t, executor.Off, python(t, `
s = stream(os.environ["WHERE"] + "/s")
s.send(b"hello\n")
print(s.recv(100))
try_("other", lambda: stream(os.environ["WHERE"] + "/t"))
`))
		c.Env = append(c.Env, "WHERE="+dir)
		c.Sandbox.Sockets, c.Sandbox.Ports = []string{dir + "/s", dir + "/missing"}, x.ports
		listed, other := machineSocket(t, dir+"/s"), machineSocket(t, dir+"/t")
		got, _ := run(t, c)
		if !strings.HasPrefix(got.Out, "b'hello\\n'\nother E") || strings.Contains(got.Out, "other ok") {
			t.Errorf("%s: got %+v", name, got)
		}
		if a, b := listed(), other(); a != 1 || b != 0 {
			t.Errorf("%s: %d and %d messages came", name, a, b)
		}
	}
}

// outsideTmp makes a folder that calls can see: /tmp is their own.
func outsideTmp(t *testing.T) string {
	t.Helper()
	for _, base := range []string{os.Getenv("HOME"), ".", "/var/lib"} {
		if dir, err := os.MkdirTemp(base, ".toold-test-"); err == nil {
			t.Cleanup(func() { os.RemoveAll(dir) })
			dir = must.Get(filepath.Abs(dir))(t)
			if !strings.HasPrefix(dir, "/tmp/") {
				return dir
			}
		}
	}
	t.Skip("every folder that can be written lies in /tmp, which calls do not see")
	return ""
}

func TestTheReportTellsWhoJudgesSockets(t *testing.T) {
	t.Parallel()
	c := in(t, executor.Off, "true")
	c.Sandbox.Mode = sandbox.ReadOnly
	_, e := run(t, c)
	if len(e.Sandbox.Enforced) != 4 || e.Sandbox.Enforced[3] != "sockets" {
		t.Errorf("got %v", e.Sandbox.Enforced)
	}
}

// BenchmarkConnect measures a connect to a local socket within a call, with the
// broker and without any sandbox, in the same interpreter.
func BenchmarkConnect(b *testing.B) {
	for _, mode := range []sandbox.Mode{sandbox.WorkspaceWrite, sandbox.FullAccess} {
		b.Run(mode.String(), func(b *testing.B) {
			c := in(b, executor.Off, `python3 -c '
import os, socket, time
os.path.exists("s") and os.remove("s")
l = socket.socket(socket.AF_UNIX); l.bind("s"); l.listen(4096)
times = []
for _ in range(2000):
    s = socket.socket(socket.AF_UNIX)
    begun = time.perf_counter_ns()
    s.connect("s")
    times.append(time.perf_counter_ns() - begun)
    s.close(); l.accept()[0].close()
times.sort()
print(times[1000], times[1980])'`)
			requireProgram(b, "python3")
			c.Sandbox.Mode = mode
			for b.Loop() {
				got, _ := run(b, c)
				var half, most float64
				if _, err := fmt.Sscan(got.Out, &half, &most); err != nil {
					b.Fatalf("%v in %+v", err, got)
				}
				b.ReportMetric(half/1000, "µs-p50")
				b.ReportMetric(most/1000, "µs-p99")
			}
		})
	}
}
