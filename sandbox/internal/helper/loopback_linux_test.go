//go:build linux && (amd64 || arm64)

package helper

import (
	"encoding/binary"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
)

// TestAConnectionForAnotherCallOutlivesSignals connects to a server that has no room yet, while
// signals come to the thread that waits.
func TestAConnectionForAnotherCallOutlivesSignals(t *testing.T) {
	t.Parallel()
	server, address := fullServer(t)
	type result struct {
		socket int
		err    error
	}
	thread, dialed := make(chan int, 1), make(chan result, 1)
	// Ends when the connection stands, or fails.
	go func() {
		runtime.LockOSThread()
		thread <- unix.Gettid()
		socket, err := dialLoopback(unix.AF_INET, address)
		dialed <- result{socket, err}
	}()
	waits, tick := <-thread, time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for signals := 0; ; signals++ {
		select {
		case got := <-dialed:
			if got.err != nil {
				t.Fatalf("after %d signals: %v", signals, got.err)
			}
			unix.Close(got.socket)
			return
		case <-tick.C:
		}
		_ = unix.Tgkill(os.Getpid(), waits, unix.SIGURG)
		if signals == 100 { // there is room from now on
			if fd, _, err := unix.Accept(server); err == nil {
				unix.Close(fd)
			}
		}
	}
}

func TestLoopbackIsWhatNetipSaysItIs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"127.0.0.1": true, "127.255.0.9": true, "0.0.0.0": true, "0.0.0.1": false, "128.0.0.1": false, "192.0.2.1": false,
		"::1": true, "::": true, "::2": false, "1::1": false, "::127.0.0.1": false, "2001:db8::1": false,
		"::ffff:127.0.0.1": true, "::ffff:0.0.0.0": true, "::ffff:192.0.2.1": false, "1::ffff:127.0.0.1": false,
	} {
		a := netip.MustParseAddr(text)
		domain, address := unix.AF_INET, []byte{}
		if a.Is6() {
			domain, address = unix.AF_INET6, make([]byte, 4)
		}
		address = append(append(binary.NativeEndian.AppendUint16(nil, uint16(domain)), 0x1f, 0x90), append(address, a.AsSlice()...)...)
		port, local := loopbackPort(domain, append(address, make([]byte, 8)...))
		a = a.Unmap()
		if local != want || want != (a.IsLoopback() || a.IsUnspecified()) || local && port != 8080 {
			t.Errorf("%s: local %v, port %d", text, local, port)
		}
	}
}

// fullServer listens on a port of loopback, and has no room for one more connection.
func fullServer(t *testing.T) (server int, address []byte) {
	t.Helper()
	socket := func() int {
		fd := must.Get(unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))(t)
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	server = socket()
	must.Do(t, unix.Bind(server, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	must.Do(t, unix.Listen(server, 0))
	name := must.Get(unix.Getsockname(server))(t)
	if err := unix.Connect(socket(), name); err != nil { // takes the only place
		t.Fatal(err)
	}
	port := name.(*unix.SockaddrInet4).Port
	address = binary.BigEndian.AppendUint16(binary.NativeEndian.AppendUint16(nil, unix.AF_INET), uint16(port))
	return server, append(address, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0)
}
