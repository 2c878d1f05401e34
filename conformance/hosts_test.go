//go:build linux

package conformance

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// publicAddress is an address of that network which is public, and of every host in it.
const publicAddress = "93.0.0.1"

// The calls, the daemon and the hosts have networks of their own; a name server of the test
// leads to the hosts.
func TestCallsReachHostsOfAnotherNetwork(t *testing.T) {
	t.Parallel()
	playInNetwork(t, networkJob{Address: publicAddress, Play: "hosts"})
}

const hostsConfig = `version: 1
sandbox:
  network: proxy
  egress: {allow: [good.example], private: [93.0.0.1]}
`

const hostsPolicy = `version: 1
defaults: {bash: allow, read: allow, write: allow, net: ask, unanalysable: ask}
`

const hostsRevoked = hostsPolicy + `net:
  - {id: no-more, decision: deny, hosts: [good.example]}
`

func (j networkJob) hosts() error {
	config, policy := filepath.Join(j.Dir, "config.yaml"), filepath.Join(j.Dir, "policy.yaml")
	if err := errors.Join(os.WriteFile(config, []byte(hostsConfig), 0o600), os.WriteFile(policy, []byte(hostsPolicy), 0o600)); err != nil {
		return err
	}
	// So few descriptors are what many machines give a daemon.
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 1024, Max: 1024}); err != nil {
		return err
	}
	return j.serve([]string{"--listen", "127.0.0.1:0", "--config", config, "--policy", policy}, func(string) error {
		return errors.Join(j.hidesNoName(), j.sharesPlaces(), j.revokes(policy))
	})
}

// bash is a call of a script to which a person has said yes beforehand.
func (j networkJob) bash(script string) *exec.Cmd {
	cmd := j.toold("call", "--yes", "bash", script)
	cmd.Stderr = os.Stderr
	return cmd
}

// hidesNoName has calls begin TLS for a host that is not allowed, at the address of one that
// is, in records of versions that were never assigned.
func (j networkJob) hidesNoName() error {
	l, err := net.Listen("tcp", publicAddress+":443")
	if err != nil {
		return err
	}
	defer l.Close()
	var mu sync.Mutex
	var asked []string
	config := &tls.Config{GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, h.ServerName)
		return nil, errors.New("no certificate")
	}}
	// Ends when the listener is closed.
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			go func() { defer c.Close(); tls.Server(c, config).Handshake() }()
		}
	}()
	say := func(name string, version uint16) (string, error) {
		hello := greeting(name)
		binary.BigEndian.PutUint16(hello[1:], version)
		if err := os.WriteFile(filepath.Join(j.Dir, "ws", "hello"), hello, 0o600); err != nil {
			return "", err
		}
		out, err := j.bash("exec 3<>/dev/tcp/good.example/443 && cat hello >&3 && cat <&3 | wc -c").Output()
		return string(out), err
	}
	for _, version := range []uint16{0x0000, 0x0103, 0x0201, 0x0303, 0x0401, 0x0fff} {
		if _, err := say("evil.example", version); err != nil {
			fmt.Fprintf(os.Stderr, "%04x: %v\n", version, err)
		}
	}
	if out, err := say("good.example", 0x0301); err != nil || out == "0\n" {
		return fmt.Errorf("TLS for the host that is allowed was answered with %q bytes, %v", out, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(asked, []string{"good.example"}) {
		return fmt.Errorf("the hosts were asked for %q", asked)
	}
	return nil
}

// greeting is what a client of TLS says first.
func greeting(name string) []byte {
	client, server := net.Pipe()
	go func() { tls.Client(client, &tls.Config{ServerName: name}).Handshake() }()
	b := make([]byte, 16<<10)
	n, _ := server.Read(b)
	server.Close()
	return b[:n]
}

// greeter is a host that greets and then keeps the connection.
type greeter struct {
	net.Listener
	came atomic.Int64
}

func greetings() (*greeter, error) {
	l, err := net.Listen("tcp", publicAddress+":80")
	if err != nil {
		return nil, err
	}
	g := &greeter{Listener: l}
	// Ends when the listener is closed, and with the connections.
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			g.came.Add(1)
			go func() { defer c.Close(); io.WriteString(c, "hello\n"); io.Copy(io.Discard, c) }()
		}
	}()
	return g, nil
}

// sharesPlaces has one call make as many connections as it can, and others one each.
func (j networkJob) sharesPlaces() error {
	host, err := greetings()
	if err != nil {
		return err
	}
	defer host.Close()
	greedy := j.bash(`for i in {1..300}; do exec {fd}<>/dev/tcp/good.example/80 || exit; read -r line <&$fd && echo "$line"; done; sleep 1000`)
	out, err := greedy.StdoutPipe()
	if err == nil {
		err = greedy.Start()
	}
	if err == nil {
		_, err = bufio.NewReader(out).ReadString('\n')
	}
	for before := int64(-1); err == nil && before != host.came.Load(); { // until it gets no more
		before = host.came.Load() + 1 // that of the next call
		var got []byte
		if got, err = j.bash("exec 3<>/dev/tcp/good.example/80 && head -n 1 <&3").Output(); err == nil && string(got) != "hello\n" {
			err = fmt.Errorf("beside a call with many connections another got %q", got)
		}
	}
	if greedy.Process != nil {
		err = errors.Join(err, greedy.Process.Signal(os.Interrupt))
		io.Copy(io.Discard, out)
		greedy.Wait() // it was cancelled
	}
	return err
}

// revokes denies a host to which a call is connected.
func (j networkJob) revokes(policy string) error {
	host, err := greetings()
	if err != nil {
		return err
	}
	defer host.Close()
	call := j.bash("exec 3<>/dev/tcp/good.example/80 && cat <&3; echo over")
	pipe, err := call.StdoutPipe()
	if err == nil {
		err = call.Start()
	}
	if err != nil {
		return err
	}
	out := bufio.NewReader(pipe)
	if line, err := out.ReadString('\n'); err != nil || line != "hello\n" {
		return fmt.Errorf("the host said %q, %v", line, err)
	}
	if err := os.WriteFile(policy, []byte(hostsRevoked), 0o600); err != nil {
		return err
	}
	if got, err := j.toold("reload").CombinedOutput(); err != nil {
		return fmt.Errorf("reload: %w: %s", err, got)
	}
	rest, err := io.ReadAll(out)
	if err = errors.Join(err, call.Wait()); err != nil || !strings.HasSuffix(string(rest), "over\n") {
		return fmt.Errorf("after its host was denied the call printed %q, %v", rest, err)
	}
	if got, _ := j.bash("exec 3<>/dev/tcp/good.example/80 && head -n 1 <&3").Output(); len(got) > 0 {
		return fmt.Errorf("a host that is denied said %q", got)
	}
	return nil
}
