//go:build linux

package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toold/toold/client"
	"github.com/toold/toold/conformance/suite"
	"github.com/toold/toold/conformance/suite/execution"
	"github.com/toold/toold/message"
)

// TestStressAKilledDaemonLeavesNothing kills daemons with SIGKILL at random moments,
// while calls begin, run and end. Nothing of them may be left on the machine, and the
// next daemon answers each call that was lost without running it twice.
func TestStressAKilledDaemonLeavesNothing(t *testing.T) {
	t.Parallel()
	n := amount(t, "TOOLD_STRESS_CRASHES", 2)
	if why := unconfined(t.Context()); why != "" {
		t.Skip(why)
	}
	for name, settings := range map[string]map[string]any{
		"confined":   nil,
		"read-only":  {"sandbox": map[string]any{"profile": "read-only"}},
		"unconfined": {"sandbox": map[string]any{"profile": "danger-full-access", "i_understand_full_access": true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWreck(t, settings)
			var took []time.Duration
			for range n {
				took = append(took, w.crash())
			}
			if err := w.start().stop(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
			w.ranOnce()
			w.noGroups()
			t.Logf("%d daemons killed; the last process of each was gone after %v (p50), %v (p99)", n, percentile(took, 0.5), percentile(took, 0.99))
		})
	}
}

// wreck is a site whose daemons are killed.
type wreck struct {
	t       *testing.T
	site    *site
	program string
	temp    string // the daemons' folder for temporary files
	mark    string // in the command lines of what the calls start
	agents  int
	round   int
	dead    []int         // process ids of the daemons
	lost    []client.Call // calls that the last daemon has not answered
}

func newWreck(t *testing.T, settings map[string]any) *wreck {
	t.Helper()
	w := &wreck{t: t, agents: 4, temp: t.TempDir(), mark: fmt.Sprintf("6%09d", time.Now().UnixNano()%1e9)}
	var err error
	if w.program, err = underTest.pathOf(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	if w.site, err = newExecSite(t.TempDir(), execution.Case{}); err != nil {
		t.Fatal(err)
	}
	if err = w.site.add(settings); err != nil {
		t.Fatal(err)
	}
	w.site.env = append(w.site.env, "TMPDIR="+w.temp)
	return w
}

func (w *wreck) start() *daemon {
	w.t.Helper()
	limit, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	d, err := startDaemon(limit, w.program, w.site)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// crash starts a daemon, repeats the calls that the last one has lost, keeps it busy,
// kills it, and returns how long what it started lived on.
func (w *wreck) crash() time.Duration {
	w.round++
	d := w.start()
	defer d.kill()
	limit, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	yes, err := approver(limit, d)
	if err != nil {
		w.t.Fatal(err)
	}
	defer yes.close()
	w.repeat(d)
	var busy sync.WaitGroup
	var mu sync.Mutex
	for a := range w.agents {
		c, err := client.Dial(limit, client.Options{URL: d.ws, Token: d.tokens["agent"]})
		if err != nil {
			w.t.Fatal(err)
		}
		defer c.Close()
		// Ends with the daemon.
		busy.Go(func() {
			call := w.call(limit, c, a)
			mu.Lock()
			defer mu.Unlock()
			w.lost = append(w.lost, call)
		})
	}
	moment := time.Duration(rand.Int64N(int64(150 * time.Millisecond)))
	if err := suite.Sleep(limit, moment); err != nil {
		w.t.Fatal(err)
	}
	took := w.kill(d)
	busy.Wait()
	w.looksClean(moment)
	return took
}

// call makes one call after the other until the daemon is gone, and returns the one
// that got no answer.
func (w *wreck) call(ctx context.Context, c *client.Client, agent int) client.Call {
	for i := 0; ; i++ {
		id := fmt.Sprintf("crash-%s-%d-%d-%d", w.mark, w.round, agent, i)
		began := "echo " + id + " >>began; "
		script := map[string]any{"command": began + []string{
			"true", "seq 1 2000", strings.ReplaceAll(sixWays, "MARK", w.mark), "trap '' TERM; sleep " + w.mark + " & sleep " + w.mark, "sleep " + w.mark + " & echo left",
			"echo x >.envrc; mkdir -p made/.git/hooks; echo x >made/.git/hooks/pre-commit; rm -rf made", // which goes to the quarantine
		}[(agent+i)%6], "terminal": []string{"split", "off", "single"}[i%3], "background": (agent+i)%6 == 3}
		call := client.Call{ID: id, Tool: "bash", Arguments: script}
		if i%4 == 3 {
			call = client.Call{ID: id, Tool: "write_file", Arguments: map[string]any{"path": "written", "content": strings.Repeat(id+"\n", 10_000)}}
		}
		if i%8 == 6 {
			call = client.Call{ID: id, Tool: "read_file", Arguments: map[string]any{"path": "written"}}
		}
		if _, err := c.Call(ctx, call, client.Events{}); err != nil {
			return call
		}
	}
}

// repeat sends the lost calls again. Each gets a return; one that had not reached the
// journal may run now, and is cancelled when it would run for ever.
func (w *wreck) repeat(d *daemon) {
	w.t.Helper()
	c, err := client.Dial(w.t.Context(), client.Options{URL: d.ws, Token: d.tokens["agent"]})
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	for _, call := range w.lost {
		_, err := c.Call(w.t.Context(), call, client.Events{Output: func(_ message.OutputDelta, data []byte) {
			if bytes.Contains(data, []byte("started")) {
				c.Cancel(call.ID, "")
			}
		}})
		if err != nil {
			w.t.Errorf("%s, repeated: %v", call.ID, err)
		}
	}
	w.lost = nil
}

// kill kills the daemon and waits until nothing is left of what it started. It stands
// still while its children are counted, so that none is missed.
func (w *wreck) kill(d *daemon) time.Duration {
	w.t.Helper()
	d.ended = true
	w.dead = append(w.dead, d.pid)
	syscall.Kill(d.pid, syscall.SIGSTOP)
	suite.Poll(patience, func() bool { return startOf(d.pid) == "" || stateOf(d.pid) == "T" })
	children := map[int]string{}
	for _, c := range childrenOf(d.pid) {
		children[c.pid] = startOf(c.pid)
	}
	begun := time.Now()
	syscall.Kill(d.pid, syscall.SIGKILL)
	gone := func() bool {
		for pid, start := range children {
			if start != "" && startOf(pid) == start {
				return false
			}
			delete(children, pid)
		}
		return true
	}
	if !suite.Poll(patience, gone) || !suite.Poll(patience, func() bool { return len(survivors(w.mark)) == 0 }) {
		w.t.Errorf("round %d: %v and %q live on", w.round, children, survivors(w.mark))
	}
	return time.Since(begun)
}

// stateOf is the state of a process and startOf the time of its start (proc(5),
// stat); of one that has ended there is none.
func stateOf(pid int) string { return statField(pid, 0) }

func startOf(pid int) string {
	if stateOf(pid) == "Z" {
		return ""
	}
	return statField(pid, 19)
}

func statField(pid, i int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if err != nil || len(fields) <= i {
		return ""
	}
	return fields[i]
}

// looksClean looks for what is left on the machine.
func (w *wreck) looksClean(moment time.Duration) {
	w.t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || bytes.Contains(mounts, []byte(w.site.workspace)) || bytes.Contains(mounts, []byte(w.site.state)) {
		w.t.Errorf("round %d, killed after %v: mounts are left (%v):\n%s", w.round, moment, err, mounts)
	}
	for _, dir := range []string{w.temp, w.site.workspace} {
		err := filepath.WalkDir(dir, func(path string, f fs.DirEntry, err error) error {
			rest := strings.TrimPrefix(strings.TrimPrefix(path, dir), "/")
			if err == nil && rest != "" && (dir == w.temp || strings.Contains(rest, "toold")) {
				w.t.Errorf("round %d, killed after %v: %s is left", w.round, moment, path)
			}
			return err
		})
		if err != nil {
			w.t.Error(err)
		}
	}
}

// ranOnce checks that no script began twice.
func (w *wreck) ranOnce() {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.site.workspace, "began"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if seen[line] {
			w.t.Errorf("%s began twice", strings.TrimSpace(line))
		}
		seen[line] = true
	}
	w.t.Logf("%d scripts began", len(seen))
}

// noGroups checks that the last daemon has removed the control groups of those that
// were killed.
func (w *wreck) noGroups() {
	w.t.Helper()
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, f fs.DirEntry, err error) error {
		for _, pid := range w.dead {
			if err == nil && strings.HasPrefix(f.Name(), fmt.Sprintf("toold-%d-", pid)) {
				w.t.Errorf("the control group %s is left", path)
			}
		}
		return nil // others come and go
	})
}

// BenchmarkCrash is the time from the daemon's end by SIGKILL to the end of the last
// process of a tree of seventeen, each with the daemon's own means only.
func BenchmarkCrash(b *testing.B) {
	program, err := underTest.pathOf(context.WithoutCancel(b.Context()))
	if err != nil {
		b.Fatal(err)
	}
	for name, profile := range map[string]string{"confined": "workspace-write", "unconfined": "danger-full-access"} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				site, err := newExecSite(b.TempDir(), execution.Case{})
				if err != nil {
					b.Fatal(err)
				}
				if err = site.add(map[string]any{"sandbox": map[string]any{"profile": profile, "i_understand_full_access": true}}); err != nil {
					b.Fatal(err)
				}
				d, err := startDaemon(b.Context(), program, site)
				if err != nil {
					b.Fatal(err)
				}
				took = append(took, crashTree(b, d, site))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(percentile(took, 0.5).Microseconds()), "µs-p50")
			b.ReportMetric(float64(percentile(took, 0.99).Microseconds()), "µs-p99")
		})
	}
}

// crashTree has the daemon start a tree, kills it, and tells how long the tree's last
// process lived: each holds a FIFO.
func crashTree(b *testing.B, d *daemon, s *site) time.Duration {
	b.Helper()
	if err := syscall.Mkfifo(filepath.Join(s.workspace, "life"), 0o600); err != nil {
		b.Fatal(err)
	}
	held, err := os.OpenFile(filepath.Join(s.workspace, "life"), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer held.Close()
	c, err := client.Dial(b.Context(), client.Options{URL: d.ws, Token: d.tokens["agent"]})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	var begun time.Time
	script := "exec 9>life; for i in {1..8}; do sleep 1000 & setsid sleep 1000 & done; echo started; wait"
	_, err = c.Call(b.Context(), client.Call{Tool: "bash", Arguments: map[string]any{"command": script, "terminal": "off"}},
		client.Events{Output: func(_ message.OutputDelta, data []byte) {
			if begun.IsZero() && bytes.Contains(data, []byte("started")) {
				begun = time.Now()
				d.kill()
			}
		}})
	if err == nil || begun.IsZero() {
		b.Fatalf("the call ended before its daemon: %v", err)
	}
	if _, err := io.Copy(io.Discard, held); err != nil {
		b.Fatal(err)
	}
	return time.Since(begun)
}
