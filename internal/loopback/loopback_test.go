package loopback

import (
	"net"
	"testing"

	"github.com/toold/toold/internal/must"
)

func TestNamesOfThisMachine(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "localhost.": true, "a.localhost": true, "a.B.localhost.": true,
		"": false, "localhost.example": false, "xlocalhost": false, "127.0.0.1": false, "localhost..": false,
	} {
		if Is(host) != want {
			t.Errorf("%q: %v", host, !want)
		}
	}
}

func TestNamesOfThisMachineAreLoopback(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"localhost", "toold.localhost", "LOCALHOST."} {
		l := must.Get(Listen("tcp", net.JoinHostPort(name, "0")))(t)
		defer l.Close()
		at := l.Addr().(*net.TCPAddr)
		if !at.IP.IsLoopback() {
			t.Errorf("%s listens on %s", name, at)
		}
		_, port, _ := net.SplitHostPort(at.String())
		c := must.Get(Dial(t.Context(), "tcp", net.JoinHostPort(name, port)))(t)
		defer c.Close()
		if c.RemoteAddr().String() != at.String() {
			t.Errorf("%s is %s, want %s", name, c.RemoteAddr(), at)
		}
	}
}

// An address that is taken is no reason to listen on another.
func TestATakenPortIsAnError(t *testing.T) {
	t.Parallel()
	l := must.Get(Listen("tcp", "localhost:0"))(t)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if other, err := Listen("tcp", "localhost:"+port); err == nil {
		other.Close()
		t.Errorf("listens on %s as well", other.Addr())
	}
}
