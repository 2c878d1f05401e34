//go:build linux

package conformance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/toold/toold/client"
	"github.com/toold/toold/conformance/suite"
)

// peers are ways to have "true" run by bash, each of which opens as many clients as are asked
// for. What is not installed skips.
var peers = []struct {
	name string
	open func(b *testing.B, clients int) (run func(who int))
}{
	{"toold", func(b *testing.B, n int) func(int) { return tooldClients(b, nil, n) }},
	{"toold-unconfined", func(b *testing.B, n int) func(int) {
		return tooldClients(b, map[string]any{"sandbox": map[string]any{"profile": "danger-full-access", "i_understand_full_access": true}}, n)
	}},
	{"codex-sandbox", codexClients},
	{"ssh-unconfined", sshClients},
	{"bwrap", bwrapStarts},
}

// BenchmarkPeers lays toold beside others in one run: one client with 25 ms between its calls,
// one without pause, and eight, each in turn with bash by os/exec (F1).
func BenchmarkPeers(b *testing.B) {
	for _, p := range peers {
		b.Run(p.name, func(b *testing.B) {
			const clients = 8
			run := p.open(b, clients)
			crowd(clients, clients, run)
			var paused, busy samples
			var ours, plain time.Duration
			for b.Loop() {
				for range 40 {
					paused.turn(b, 25*time.Millisecond, run)
					busy.turn(b, 0, run)
				}
				begun := time.Now()
				crowd(clients, 16*clients, run)
				middle := time.Now()
				crowd(clients, 16*clients, func(int) { floor(b) })
				ours, plain = ours+middle.Sub(begun), plain+time.Since(middle)
			}
			paused.report(b, "F1-paused")
			b.ReportMetric(float64(percentile(busy.ours, 0.5))/float64(percentile(busy.floor, 0.5)), "x-F1")
			b.ReportMetric(float64(plain)/float64(ours), "x-rate-of-F1")
		})
	}
}

// turn runs one command and its floor, each after a pause.
func (s *samples) turn(b *testing.B, pause time.Duration, run func(int)) {
	suite.Sleep(b.Context(), pause)
	begun := time.Now()
	run(0)
	s.ours = append(s.ours, time.Since(begun))
	suite.Sleep(b.Context(), pause)
	s.floor = append(s.floor, floor(b))
}

func tooldClients(b *testing.B, settings map[string]any, n int) func(int) {
	r := newRig(b, settings)
	agents := make([]*client.Client, n)
	for i := range agents {
		agents[i] = r.dial(client.Options{})
	}
	return func(who int) { r.bash(agents[who], "true", "off", client.Events{}) }
}

// codexClients are connections to Codex's own exec-server, which confines by Codex's own sandbox.
func codexClients(b *testing.B, n int) func(int) {
	program := stockCodex(b)
	r := newCodexRig(b)
	dial, aliases := codexServer(b, program, r.site.workspace)
	more := map[string]any{
		"sandbox": r.sandboxOf(b, "file://"+r.site.workspace, "restricted"),
		"env":     map[string]any{"PATH": aliases + ":" + os.Getenv("PATH")}, // where Codex finds its own sandbox
	}
	conns, calls := make([]*codexConn, n), make([]int, n)
	for i := range conns {
		conns[i] = dial()
	}
	return func(who int) {
		calls[who]++
		if out, code := conns[who].run(r.start(fmt.Sprintf("p%d-%d", who, calls[who]), "bash -c true", more)); code != 0 {
			b.Errorf("exit code %d: %v", code, out)
		}
	}
}

// sshClients are connections to an sshd of this test on loopback. Each call is the program ssh,
// which hands its command to a connection that is there.
func sshClients(b *testing.B, n int) func(int) {
	server, err := exec.LookPath("/usr/sbin/sshd")
	if err != nil {
		b.Skip("needs sshd (openssh-server) and ssh: ", err)
	}
	dir := b.TempDir()
	b.Chdir(dir)
	port := reservePort(b)
	must := func(name string, args ...string) {
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			b.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	must("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, "key"))
	if os.Getuid() == 0 {
		must("mkdir", "-p", "/run/sshd") // where sshd gives up its rights
	}
	daemon := exec.Command(server, "-D", "-f", "/dev/null", "-p", port, "-h", filepath.Join(dir, "key"),
		"-o", "ListenAddress=127.0.0.1", "-o", "PidFile=none", "-o", "StrictModes=no", "-o", "UsePAM=no", "-o", "MaxStartups=100",
		"-o", "SetEnv=SHLVL=2", // else bash would read ~/.bashrc for each command
		"-o", "AuthorizedKeysFile="+filepath.Join(dir, "key.pub"))
	if err := daemon.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = daemon.Process.Kill(); _ = daemon.Wait() })
	call := func(who int, args ...string) *exec.Cmd {
		return exec.Command("ssh", append([]string{
			"-F", "none", "-p", port, "-i", filepath.Join(dir, "key"), "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
			"-o", "LogLevel=ERROR", "-o", "BatchMode=yes", "-S", fmt.Sprintf("s%d", who),
		}, args...)...)
	}
	for who := range n {
		for call(who, "-fNM", "127.0.0.1").Run() != nil {
			if err := suite.Sleep(b.Context(), 20*time.Millisecond); err != nil {
				b.Fatal("sshd does not answer: ", err)
			}
		}
		b.Cleanup(func() { _ = call(who, "-O", "exit", "127.0.0.1").Run() })
	}
	return func(who int) {
		if out, err := call(who, "127.0.0.1", "bash -c true").CombinedOutput(); err != nil {
			b.Errorf("ssh: %v: %s", err, out)
		}
	}
}

// bwrapStarts are views like that of toold made by bubblewrap, without Landlock, filters,
// limits, masks, a record or anyone who is asked.
func bwrapStarts(b *testing.B, _ int) func(int) {
	program, err := exec.LookPath("bwrap")
	if err != nil {
		b.Skip("needs bwrap (bubblewrap): ", err)
	}
	dir := b.TempDir()
	return func(int) {
		out, err := exec.Command(program, "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev",
			"--tmpfs", "/tmp", "--tmpfs", "/run", "--bind", dir, dir, "--chdir", dir, "bash", "-c", "true").CombinedOutput()
		if err != nil {
			b.Errorf("bwrap: %v: %s", err, out)
		}
	}
}
