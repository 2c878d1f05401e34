package executor_test

import (
	"bytes"
	"context"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox/launch"
)

// server prints its port and answers each connection, on IPv4 and IPv6, with a word.
const server = `exec python3 -u -c '
import socket, threading
def serve(s):
    while True:
        c, _ = s.accept()
        c.sendall(b"from the server\n"); c.close()
s = socket.create_server(("127.0.0.1", 0))
port = s.getsockname()[1]
try:
    threading.Thread(target=serve, args=(socket.create_server(("::1", port), family=socket.AF_INET6),), daemon=True).start()
except OSError:
    pass
print("ready", port)
serve(s)'`

func lend(t *testing.T, l *launch.Loopback, change func(*executor.Command)) (port string, end func()) {
	t.Helper()
	requireProgram(t, "python3")
	c := in(t, executor.Off, server)
	c.Loopback, c.Lends, c.WaitAll = l, "background-1", true
	if change != nil {
		change(&c)
	}
	out := listenFor("\n")
	c.Stdout = out
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	// Ends with cancel.
	running.Go(func() {
		if _, err := executor.Run(ctx, c); err != nil {
			t.Error(err)
		}
	})
	end = sync.OnceFunc(func() { cancel(); cancel(); running.Wait() })
	t.Cleanup(end)
	<-out.come
	_, port, _ = strings.Cut(strings.TrimSpace(out.String()), " ")
	return port, end
}

func TestABackgroundServerIsReachedFromALaterCall(t *testing.T) {
	t.Parallel()
	var l launch.Loopback
	port, end := lend(t, &l, nil)
	pool := executor.NewPool(1, nil)
	defer pool.Close()
	c := in(t, executor.Off, `cat </dev/tcp/127.0.0.1/`+port+`; python3 -c '
import asyncio, socket
async def main():
    for host in ("127.0.0.1", "::1"):
        r, w = await asyncio.open_connection(host, `+port+`)
        print((await r.read()).decode().strip())
asyncio.run(main())
s = socket.create_connection(("127.0.0.1", `+port+`)); print(s.recv(100).decode().strip(), s.getpeername())'`)
	c.Loopback = &l
	want := strings.Repeat("from the server\n", 3) + "from the server ('127.0.0.1', " + port + ")\n"
	for range 3 { // started for it, and waiting
		var out, errs bytes.Buffer
		c.Stdout, c.Stderr = &out, &errs
		got, err := pool.Run(t.Context(), c)
		if err != nil || out.String() != want || !slices.Equal(got.Borrowed, []string{"background-1"}) {
			t.Errorf("got %q, %q, %+v, %v", out.String(), errs.String(), got, err)
		}
	}
	end()
	if got, e := run(t, c); got.Out != "" || len(e.Borrowed) > 0 {
		t.Errorf("after its end: %+v, %v", got, e.Borrowed)
	}
}

func TestASocketKeepsItsOptionsWhereTheServerIsOfAnotherCall(t *testing.T) {
	t.Parallel()
	var l launch.Loopback
	port, _ := lend(t, &l, nil)
	c := in(t, executor.Off, `python3 -c '
import socket, struct
s = socket.socket()
S, T = socket.SOL_SOCKET, socket.IPPROTO_TCP
options = {"SO_KEEPALIVE": (S, 1), "SO_RCVTIMEO": (S, struct.pack("ll", 7, 0)), "SO_SNDTIMEO": (S, struct.pack("ll", 90, 0)), "SO_LINGER": (S, struct.pack("ii", 1, 5)),
    "TCP_NODELAY": (T, 1), "TCP_KEEPIDLE": (T, 11), "TCP_KEEPINTVL": (T, 12), "TCP_KEEPCNT": (T, 3), "TCP_USER_TIMEOUT": (T, 4000)}
try:
    s.getsockopt(S, 72) # SO_BUF_LOCK, since Linux 5.14
    options["SO_RCVBUF"] = options["SO_SNDBUF"] = S, 16384
except OSError:
    pass
for name, (level, value) in options.items():
    s.setsockopt(level, getattr(socket, name), value)
now = lambda: {name: s.getsockopt(level, getattr(socket, name), 16) for name, (level, value) in options.items()}
before = now()
s.connect(("127.0.0.1", `+port+`))
after = now()
print({name: (before[name], after[name]) for name in options if before[name] != after[name]}, s.recv(100).decode().strip())'`)
	c.Loopback = &l
	if got, e := run(t, c); got.Out != "{} from the server\n" || len(e.Borrowed) != 1 {
		t.Errorf("got %+v, %v", got, e.Borrowed)
	}
}

// Whatever the call has of its own comes first.
func TestAServerOfTheCallItselfComesFirst(t *testing.T) {
	t.Parallel()
	var l launch.Loopback
	port, _ := lend(t, &l, nil)
	c := in(t, executor.Off, `python3 -c '
import socket
s = socket.create_server(("127.0.0.1", `+port+`))
c = socket.create_connection(("127.0.0.1", `+port+`))
s.accept()[0].sendall(b"mine"); print(c.recv(9).decode())'`)
	c.Loopback = &l
	if got, _ := run(t, c); got.Out != "mine\n" {
		t.Errorf("got %+v", got)
	}
}

func TestNothingButLoopbackOfTheConversationIsReached(t *testing.T) {
	t.Parallel()
	var l launch.Loopback
	port, _ := lend(t, &l, nil)
	host := must.Get(net.Listen("tcp4", "127.0.0.1:0"))(t)
	defer host.Close()
	hostPort := strconv.Itoa(host.Addr().(*net.TCPAddr).Port)
	try := func(to string) string { return `(cat </dev/tcp/` + to + `) 2>/dev/null || echo no; ` }
	for name, row := range map[string]struct {
		l      *launch.Loopback
		script string
		change func(*executor.Command)
	}{
		"another conversation": {new(launch.Loopback), try("127.0.0.1/" + port), nil},
		"no conversation":      {nil, try("127.0.0.1/" + port), nil},
		"the host":             {&l, try("127.0.0.1/" + hostPort), nil},
		"another address":      {&l, try("93.184.216.34/" + port), nil},
		"an abstract socket": {&l, `python3 -c '
import socket
s = socket.socket(socket.AF_UNIX)
try: s.connect("\0toold-test-` + port + `"); print("yes")
except OSError: print("no")'`, nil},
		"a call with hosts by name": {&l, try("127.0.0.1/" + port), func(c *executor.Command) { c.Sandbox.Ports = []uint16{443} }},
	} {
		c := in(t, executor.Off, row.script)
		c.Loopback = row.l
		if row.change != nil {
			row.change(&c)
		}
		if got, _ := run(t, c); got.Out != "no\n" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A borrowed socket is one of the other network: it must not lead anywhere else there.
func TestACallWithHostsByNameLendsNothing(t *testing.T) {
	t.Parallel()
	var l launch.Loopback
	port, _ := lend(t, &l, func(c *executor.Command) { c.Sandbox.Ports = []uint16{443} })
	c := in(t, executor.Off, `(cat </dev/tcp/127.0.0.1/`+port+`) 2>/dev/null || echo no`)
	c.Loopback = &l
	if got, e := run(t, c); got.Out != "no\n" || len(e.Borrowed) > 0 {
		t.Errorf("got %+v, %v", got, e.Borrowed)
	}
}
