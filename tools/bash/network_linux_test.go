package bash_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/egress"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/bash"
)

// internet is all that a test's calls could reach: each name leads to the address
// that is listed for it, and every address to one web server, which answers with
// the address, the port and the name that it was asked for.
type internet struct {
	address   string // of the server
	names     map[string]string
	workspace string

	mu     sync.Mutex
	dialed []string
	asked  []string // of whoever decides
}

func newInternet(t testing.TB) *internet {
	t.Helper()
	ws := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	i := &internet{workspace: ws, names: map[string]string{"pkg.example": "93.184.216.34", "other.example": "93.184.216.35"}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "hello "+r.Host) }))
	t.Cleanup(server.Close)
	i.address = server.Listener.Addr().String()
	return i
}

func (i *internet) lookup(_ context.Context, host string) ([]netip.Addr, error) {
	var found []netip.Addr
	for a := range strings.FieldsSeq(i.names[host]) {
		found = append(found, netip.MustParseAddr(a))
	}
	if found != nil {
		return found, nil
	}
	return nil, errors.New("no such host")
}

func (i *internet) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	i.mu.Lock()
	i.dialed = append(i.dialed, to.String())
	i.mu.Unlock()
	var d net.Dialer
	return d.DialContext(ctx, "tcp", i.address)
}

// decide lets every host of names but denied.example.
func (i *internet) decide(_ context.Context, host string, ports []uint16) error {
	i.mu.Lock()
	i.asked = append(i.asked, host+fmt.Sprint(ports))
	i.mu.Unlock()
	if strings.HasPrefix(host, "denied") {
		return errors.New("rule no denies it")
	}
	return nil
}

// run runs a script in a sandbox with this internet.
func (i *internet) run(t testing.TB, script string, pool *executor.Pool, change func(*bash.Options, *tools.IO)) (tools.Result, string) {
	t.Helper()
	ws := i.workspace
	io := tools.IO{Connect: i.decide}
	o := bash.Options{
		Workspace: ws, Terminal: executor.Off, Pool: pool, Env: executor.BaseEnv(executor.EnvOptions{From: os.Environ()}),
		Profile: sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: ws, Ports: []uint16{80, 443}},
		Egress:  egress.Options{Lookup: i.lookup, Dial: i.dial},
	}
	if change != nil {
		change(&o, &io)
	}
	get := "get() { exec 3<>/dev/tcp/$1/${2:-80} && printf 'GET / HTTP/1.0\\r\\nHost: %s\\r\\n\\r\\n' $1 >&3 && sed -n '$p' <&3; }\n"
	return run(t, build(t, bash.New(o), get+script), io)
}

func TestCallsReachHostsByName(t *testing.T) {
	t.Parallel()
	i := newInternet(t)
	r, out := i.run(t, "get pkg.example; get PKG.Example; get other.example 443", nil, nil)
	if out != "hello pkg.example\nhello PKG.Example\nhello other.example\n" || r.IsError {
		t.Errorf("got %q, %+v", out, r)
	}
	if want := []string{"93.184.216.34:80", "93.184.216.34:80", "93.184.216.35:443"}; !slices.Equal(i.dialed, want) {
		t.Errorf("dialed %q, want %q", i.dialed, want)
	}
	if !r.Sandbox.Proxy || r.Sandbox.Network {
		t.Errorf("the report is %+v", r.Sandbox)
	}
}

func TestWhatIsNotAllowedIsNotReached(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ host, port, tells string }{
		{"denied.example", "80", "denied.example: rule no denies it"},
		{"missing.example", "80", ""},
		{"8.8.8.8", "25", ""}, // not a port of the profile
		{"127.0.0.9", "80", "127.0.0.9:80: 127.0.0.9: that is no public address; sandbox.egress.private"},
		{"10.0.0.1", "80", "10.0.0.1:80: 10.0.0.1: that is no public address"},
		{"metadata.example", "80", "metadata.example: metadata.example has the address 169.254.169.254: that is no public address"},
		{"mapped.example", "80", "mapped.example has the address ::ffff:10.0.0.1: that is no public address"},
		{"metadata.example", "80", "cannot connect to metadata.example: metadata.example has"},
		{"a..example", "80", ""},
	} {
		i := newInternet(t)
		i.names["metadata.example"], i.names["mapped.example"] = "169.254.169.254", "::ffff:10.0.0.1"
		i.names["denied.example"] = "93.184.216.36"
		r, out := i.run(t, fmt.Sprintf("(get %s %s) 2>/dev/null", c.host, c.port), nil, nil)
		if len(i.dialed) > 0 || strings.Contains(out, "hello") || !r.IsError {
			t.Errorf("%s: dialed %q, printed %q", c.host, i.dialed, out)
		}
		if !strings.Contains(r.Text, c.tells) || c.tells == "" && strings.Contains(r.Text, "refused") {
			t.Errorf("%s: the return says %q, want %q", c.host, r.Text, c.tells)
		}
	}
}

// Of several addresses those that are public are used, and the others named.
func TestAHostWithMixedAddressesIsReachedAtThePublicOnes(t *testing.T) {
	t.Parallel()
	i := newInternet(t)
	i.names["mixed.example"] = "10.0.0.1 93.184.216.36"
	r, out := i.run(t, "get mixed.example", nil, nil)
	if out != "hello mixed.example\n" || r.IsError || !slices.Equal(i.dialed, []string{"93.184.216.36:80"}) {
		t.Errorf("dialed %q, printed %q, %+v", i.dialed, out, r)
	}
	for _, want := range []string{"cannot connect to 10.0.0.1: mixed.example has the address 10.0.0.1", "the other addresses of mixed.example were not refused"} {
		if !strings.Contains(r.Text, want) || strings.Contains(r.Text, "look up") {
			t.Errorf("the return says %q, want %q", r.Text, want)
		}
	}
}

func TestPrivateNetworksCanBeListed(t *testing.T) {
	t.Parallel()
	i := newInternet(t)
	i.names["box.example"] = "10.1.2.3"
	r, out := i.run(t, "get box.example; get 10.1.2.4", nil, func(o *bash.Options, _ *tools.IO) {
		o.Egress.Private = []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}
	})
	if out != "hello box.example\nhello 10.1.2.4\n" || r.IsError {
		t.Errorf("got %q, %+v", out, r)
	}
}

// The lookup waits for the decision, and the program with it.
func TestAProgramWaitsForThePerson(t *testing.T) {
	t.Parallel()
	i := newInternet(t)
	asked, answer := make(chan string, 1), make(chan struct{})
	var answering sync.WaitGroup
	// Ends when the host was asked for.
	answering.Go(func() {
		<-asked
		close(answer)
	})
	r, out := i.run(t, "get pkg.example", nil, func(_ *bash.Options, io *tools.IO) {
		io.Connect = func(ctx context.Context, host string, _ []uint16) error {
			select {
			case asked <- host:
			default:
			}
			<-answer
			return nil
		}
	})
	answering.Wait()
	if out != "hello pkg.example\n" || r.IsError {
		t.Errorf("got %q, %+v", out, r)
	}
}

// What waits for an answer ends with the call.
func TestAQuestionEndsWithTheCall(t *testing.T) {
	t.Parallel()
	i := newInternet(t)
	asked := make(chan struct{}, 8)
	r, out := i.run(t, "get pkg.example & read -r <go; echo over", nil, func(o *bash.Options, io *tools.IO) {
		fifo := filepath.Join(o.Workspace, "go")
		must.Do(t, syscall.Mkfifo(fifo, 0o600))
		io.Connect = func(ctx context.Context, _ string, _ []uint16) error {
			asked <- struct{}{}
			<-ctx.Done()
			return context.Cause(ctx)
		}
		// Ends when the script reads.
		go func() {
			<-asked
			_ = os.WriteFile(fifo, []byte("go\n"), 0)
		}()
	})
	if !strings.Contains(out, "over") || r.IsError {
		t.Errorf("got %q, %+v", out, r)
	}
}

func TestWaitingShellsReachHosts(t *testing.T) {
	t.Parallel()
	i := newInternet(t)
	pool := executor.NewPool(1, nil)
	defer pool.Close()
	for range 3 {
		if r, out := i.run(t, "get pkg.example", pool, nil); out != "hello pkg.example\n" || r.IsError {
			t.Errorf("got %q, %+v", out, r)
		}
	}
}

// A server of the call itself is none of the daemon's business.
func TestLocalhostStaysLocal(t *testing.T) {
	t.Parallel()
	i := newInternet(t)
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	r, out := i.run(t, `mkfifo port; /usr/bin/python3 -c '
import socket
s = socket.create_server(("127.0.0.1", 0))
open("port", "w").write(str(s.getsockname()[1]))
c, _ = s.accept()
c.sendall(b"mine\n")' &
p=$(cat port); exec 3<>/dev/tcp/localhost/$p; cat <&3`, nil, nil)
	if out != "mine\n" || r.IsError || len(i.asked) > 0 {
		t.Errorf("got %q, %+v, asked %q", out, r, i.asked)
	}
}

// Without proxy there is nothing but loopback.
func TestOffIsOff(t *testing.T) {
	t.Parallel()
	i := newInternet(t)
	r, out := i.run(t, "(get pkg.example) 2>/dev/null", nil, func(o *bash.Options, _ *tools.IO) { o.Profile.Ports = nil })
	if out != "" || !r.IsError || len(i.asked) > 0 {
		t.Errorf("got %q, %+v, asked %q", out, r, i.asked)
	}
}
