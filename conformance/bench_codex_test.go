//go:build linux

package conformance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/conformance/suite"
)

// BenchmarkCodexCommand is "true" from process/start to process/closed, laid beside the same
// on Codex's own exec-server (TOOLD_CODEX), which confines it by Codex's own sandbox.
func BenchmarkCodexCommand(b *testing.B) {
	program := stockCodex(b)
	r := newCodexRig(b)
	ours, _ := r.connect(b, "")
	dial, aliases := codexServer(b, program, r.site.workspace)
	theirs := dial()
	more := map[string]any{
		"sandbox": r.sandboxOf(b, "file://"+r.site.workspace, "restricted"),
		"env":     map[string]any{"PATH": aliases + ":" + os.Getenv("PATH")}, // where Codex finds its own sandbox
	}
	var s samples
	n := 0
	run := func(c *codexConn) time.Duration {
		n++
		params := r.start(fmt.Sprintf("p%d", n), "true", more)
		begun := time.Now()
		if out, code := c.run(params); code != 0 {
			b.Fatalf("exit code %d: %v", code, out)
		}
		return time.Since(begun)
	}
	run(ours)
	run(theirs)
	for b.Loop() {
		s.ours, s.floor = append(s.ours, run(ours)), append(s.floor, run(theirs))
	}
	s.report(b, "codex")
}

// BenchmarkCodexLook is a read with which Codex looks for its own files.
func BenchmarkCodexLook(b *testing.B) {
	r := newCodexRig(b)
	c, _ := r.connect(b, "")
	var took []time.Duration
	for b.Loop() {
		begun := time.Now()
		c.answer(c.ask("fs/getMetadata", map[string]any{"path": r.uri(".git"), "sandbox": nil}))
		took = append(took, time.Since(begun))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(percentile(took, 0.5).Microseconds()), "µs-p50")
}

// codexServer starts Codex's own exec-server and connects to it. aliases is the directory of the
// programs that it has made for itself.
func codexServer(b *testing.B, program, dir string) (dial func() *codexConn, aliases string) {
	b.Helper()
	url := "ws://127.0.0.1:" + reservePort(b)
	home, err := os.MkdirTemp(".", "codex-home-") // it refuses to have its programs below /tmp
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(home) })
	if err := os.Mkdir(filepath.Join(home, ".codex"), 0o700); err != nil {
		b.Fatal(err)
	}
	if home, err = filepath.Abs(home); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(program, "exec-server", "--listen", url)
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Setpgid: true}
	cmd.Env = []string{"HOME=" + home, "CODEX_HOME=" + filepath.Join(home, ".codex"), "PATH=" + os.Getenv("PATH")}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); cmd.Wait() })
	dial = func() *codexConn {
		var ws *websocket.Conn
		for ws == nil {
			var err error
			if ws, _, err = websocket.DefaultDialer.DialContext(b.Context(), url, nil); err != nil && suite.Sleep(b.Context(), 20*time.Millisecond) != nil {
				b.Fatal(err)
			}
		}
		c := newCodexConn(b, ws)
		c.must("initialize", map[string]any{"clientName": "codex-environment", "resumeSessionId": nil}, nil)
		c.send(map[string]any{"method": "initialized", "params": map[string]any{}})
		return c
	}
	dial() // from then on it has made its programs
	found, err := filepath.Glob(filepath.Join(home, ".codex", "tmp", "*", "*"))
	if err != nil || len(found) == 0 {
		b.Fatalf("the exec-server has made no programs: %v", err)
	}
	return dial, found[0]
}
