//go:build linux

package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/toold/toold/conformance/suite/escape"
)

// networkVariable makes this test binary play one test in a network of its own, in which
// a name server says that every name leads to one address.
const networkVariable = "TOOLD_CONFORMANCE_NETWORK"

// elsewhere is an address of that network which is not loopback.
const elsewhere = "203.0.113.5"

// networkJob is what to play there.
type networkJob struct {
	Program, Dir string
	Address      string // of every name
	Play         string
}

// A resolver must not say where localhost is: the daemon would serve without TLS where
// others can reach it, and the command line would send its token there.
func TestNoResolverSaysWhereLocalhostIs(t *testing.T) {
	t.Parallel()
	playInNetwork(t, networkJob{Address: elsewhere, Play: "localhost"})
}

func playInNetwork(t *testing.T, job networkJob) {
	t.Helper()
	probe := exec.CommandContext(t.Context(), "true")
	probe.SysProcAttr = escape.WorldAttributes(false)
	if err := probe.Run(); err != nil {
		t.Skip("this machine gives no network of the test's own: " + err.Error())
	}
	var err error
	if job.Program, err = underTest.pathOf(t.Context()); err != nil {
		t.Fatal(err)
	}
	job.Dir = t.TempDir()
	text, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), networkVariable+"="+string(text), "GODEBUG=netdns=go")
	cmd.SysProcAttr = escape.WorldAttributes(false)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// inNetwork is the main function in that network; it is false in the tests themselves.
func inNetwork() bool {
	text := os.Getenv(networkVariable)
	if text == "" {
		return false
	}
	os.Unsetenv(networkVariable)
	var job networkJob
	err := json.Unmarshal([]byte(text), &job)
	if err == nil {
		err = job.enter()
	}
	switch {
	case err != nil:
	case job.Play == "localhost":
		err = job.localhost()
	case job.Play == "hosts":
		err = job.hosts()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

func (j networkJob) localhost() error {
	for _, name := range []string{"localhost", "box.localhost"} {
		if a, err := net.LookupHost(name); err != nil || len(a) != 1 || a[0] != elsewhere {
			return fmt.Errorf("the resolver says that %s is %v, %v", name, a, err)
		}
	}
	return j.serve([]string{"--listen", "localhost:0"}, j.call)
}

// toold is a command of the program in the workspace.
func (j networkJob) toold(args ...string) *exec.Cmd {
	cmd := exec.Command(j.Program, args...)
	cmd.Dir = filepath.Join(j.Dir, "ws")
	cmd.Env = append(os.Environ(), "HOME="+j.Dir, "XDG_STATE_HOME="+filepath.Join(j.Dir, "state"))
	return cmd
}

// serve calls use with the port of a daemon.
func (j networkJob) serve(flags []string, use func(port string) error) error {
	serve := j.toold(append([]string{"serve", "--json"}, flags...)...)
	if err := os.Mkdir(serve.Dir, 0o700); err != nil {
		return err
	}
	serve.Stderr = os.Stderr
	out, err := serve.StdoutPipe()
	if err != nil {
		return err
	}
	if err := serve.Start(); err != nil {
		return err
	}
	port, err := readyPort(bufio.NewReader(out))
	if err == nil {
		err = use(port)
	}
	return errors.Join(err, serve.Process.Signal(syscall.SIGTERM), serve.Wait())
}

// readyPort is the port of a daemon that listens on loopback.
func readyPort(r *bufio.Reader) (string, error) {
	text, err := r.ReadBytes('\n')
	if err != nil {
		return "", err
	}
	var ready struct{ Addresses struct{ HTTP string } }
	if err := json.Unmarshal(text, &ready); err != nil {
		return "", err
	}
	host, port, err := net.SplitHostPort(strings.TrimPrefix(ready.Addresses.HTTP, "http://"))
	if ip := net.ParseIP(host); err == nil && (ip == nil || !ip.IsLoopback()) {
		err = fmt.Errorf("the daemon listens on %s", host)
	}
	return port, err
}

// call makes a call by the name while somebody listens elsewhere.
func (j networkJob) call(port string) error {
	spy, err := net.Listen("tcp", net.JoinHostPort(elsewhere, port))
	if err != nil {
		return err
	}
	var came atomic.Int32
	done := make(chan struct{})
	// Ends when the listener is closed.
	go func() {
		defer close(done)
		for {
			c, err := spy.Accept()
			if err != nil {
				return
			}
			came.Add(1)
			c.Close()
		}
	}()
	for _, args := range [][]string{{"call", "bash", "echo here"}, {"approvals"}, {"reload"}} {
		got, failed := j.toold(append([]string{"--listen", "localhost:" + port}, args...)...).CombinedOutput()
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w: %s", args[0], failed, got))
		}
	}
	spy.Close()
	<-done
	if n := came.Load(); n > 0 {
		err = errors.Join(err, fmt.Errorf("the command line connected %d times to %s", n, elsewhere))
	}
	return err
}

// enter makes the network, and a name server for which every name has the one address.
func (j networkJob) enter() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	for at, text := range map[string]string{"/etc/hosts": "", "/etc/resolv.conf": "nameserver 127.0.0.53\n"} {
		own := filepath.Join(j.Dir, filepath.Base(at))
		if err := os.WriteFile(own, []byte(text), 0o644); err != nil {
			return err
		}
		real, err := filepath.EvalSymlinks(at)
		if err != nil {
			return err
		}
		if err := syscall.Mount(own, real, "", syscall.MS_BIND, ""); err != nil {
			return err
		}
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	if err := escape.MakeNetwork(); err != nil {
		return err
	}
	c, err := net.ListenPacket("udp", "127.0.0.53:53")
	if err != nil {
		return err
	}
	// Ends with the process.
	go func() {
		for b := make([]byte, 512); ; {
			if n, from, err := c.ReadFrom(b); err == nil {
				c.WriteTo(replyWith(j.Address, b[:n]), from)
			}
		}
	}()
	return nil
}

// replyWith answers a question for IPv4 addresses with one, others with none.
func replyWith(address string, question []byte) []byte {
	end := 12 + bytes.IndexByte(question[12:], 0) + 5
	reply := append([]byte(nil), question[:end]...)
	copy(reply[2:], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}) // a response with one question
	if question[end-3] != 1 {
		return reply
	}
	reply[7] = 1
	reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4)
	return append(reply, net.ParseIP(address).To4()...)
}
