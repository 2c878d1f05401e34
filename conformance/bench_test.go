//go:build linux

package conformance

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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

// floor is what a call is laid beside: the same command by os/exec, its output on
// a pipe.
func floor(b *testing.B) time.Duration {
	begun := time.Now()
	if _, err := exec.Command("bash", "-c", "true").Output(); err != nil {
		b.Error(err)
	}
	return time.Since(begun)
}

// samples are durations of one thing and of its floor, taken in turn.
type samples struct{ ours, floor []time.Duration }

// report prints the medians and the 99th percentile in units of the floor's
// median.
func (s *samples) report(b *testing.B, unit string) {
	b.Helper()
	base := float64(percentile(s.floor, 0.5))
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(percentile(s.ours, 0.5).Microseconds()), "µs-p50")
	b.ReportMetric(float64(percentile(s.ours, 0.5))/base, "x-"+unit)
	b.ReportMetric(float64(percentile(s.ours, 0.99))/base, "x-"+unit+"-p99")
}

// BenchmarkSmallCall is one call of "true" by one client: with shells that wait
// for a command (warm) and without (cold), one after the other and with time to
// think between calls, confined and not.
func BenchmarkSmallCall(b *testing.B) {
	free := map[string]any{"profile": "danger-full-access", "i_understand_full_access": true}
	for _, c := range []struct {
		name     string
		settings map[string]any
		think    time.Duration
	}{
		{"cold", map[string]any{"warm_shells": 0}, 0},
		{"cold-think", map[string]any{"warm_shells": 0}, 25 * time.Millisecond},
		{"warm", nil, 0},
		{"warm-think", nil, 25 * time.Millisecond},
		{"unconfined", map[string]any{"sandbox": free}, 0},
		{"unconfined-think", map[string]any{"sandbox": free}, 25 * time.Millisecond},
	} {
		for _, terminal := range []string{"split", "off"} {
			b.Run(c.name+"/"+terminal, func(b *testing.B) {
				r := newRig(b, c.settings)
				agent := r.dial(client.Options{})
				r.bash(agent, "true", terminal, client.Events{})
				var s samples
				for b.Loop() {
					for range 100 {
						suite.Sleep(b.Context(), c.think)
						begun := time.Now()
						r.bash(agent, "true", terminal, client.Events{})
						s.ours = append(s.ours, time.Since(begun))
						suite.Sleep(b.Context(), c.think)
						s.floor = append(s.floor, floor(b))
					}
				}
				s.report(b, "F1")
			})
		}
	}
}

// crowd has everybody do an equal share of n things.
func crowd(people, n int, do func(who int)) {
	var all sync.WaitGroup
	for w := range people {
		// Ends when its share is done.
		all.Go(func() {
			for i := w; i < n; i += people {
				do(w)
			}
		})
	}
	all.Wait()
}

// BenchmarkCancel is the time from a cancel to the end of the last process of a
// tree of seventeen, which the client sees by the end of a FIFO that each holds. The
// floor is a kill(2) of as many processes in one group.
func BenchmarkCancel(b *testing.B) {
	for name, before := range map[string]string{"plain": "", "deaf": "trap '' TERM INT HUP;"} {
		b.Run(name, func(b *testing.B) {
			r := newRig(b, map[string]any{"limits": map[string]any{"grace": "1ms"}})
			agent := r.dial(client.Options{})
			var s samples
			for b.Loop() {
				for range 20 {
					s.ours = append(s.ours, r.cancelTree(agent, before))
					s.floor = append(s.floor, killGroup(b))
				}
			}
			s.report(b, "kill")
			b.ReportMetric(float64(percentile(s.ours, 0.99).Microseconds()), "µs-p99")
		})
	}
}

// killGroup starts as many processes as cancelTree, in one group, kills that and tells
// how long the last one lived: each holds a pipe.
func killGroup(b *testing.B) time.Duration {
	b.Helper()
	held, theirs, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	defer held.Close()
	cmd := exec.Command("bash", "-c", "for i in {1..16}; do sleep 1000 & done; echo started; wait")
	cmd.Stdout = theirs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.ReadFull(held, make([]byte, len("started\n"))); err != nil {
		b.Fatal(err)
	}
	begun := time.Now()
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
		b.Fatal(err)
	}
	io.Copy(io.Discard, held)
	took := time.Since(begun)
	_ = cmd.Wait() // it was killed
	return took
}

// cancelTree starts a tree, cancels it and tells how long its last process lived.
func (r *rig) cancelTree(agent *client.Client, before string) time.Duration {
	id := fmt.Sprintf("tree-%d", time.Now().UnixNano())
	life := filepath.Join(r.site.workspace, id)
	if err := syscall.Mkfifo(life, 0o600); err != nil {
		r.tb.Fatal(err)
	}
	held, err := os.OpenFile(life, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		r.tb.Fatal(err)
	}
	defer held.Close()
	script := before + " exec 9>" + id + "; for i in {1..8}; do sleep 1000 & setsid sleep 1000 & done; echo started; wait"
	gone := make(chan time.Duration, 1)
	ret, err := agent.Call(r.tb.Context(), client.Call{ID: id, Tool: "bash", Arguments: map[string]any{"command": script, "terminal": "off"}},
		client.Events{Output: func(_ message.OutputDelta, data []byte) {
			if !bytes.Contains(data, []byte("started")) {
				return
			}
			begun := time.Now()
			// Ends when no process holds the FIFO any more.
			go func() {
				io.Copy(io.Discard, held)
				gone <- time.Since(begun)
			}()
			agent.Cancel(id, "")
		}})
	if err != nil || !ret.Cancelled {
		r.tb.Fatalf("%v %.300s", err, ret.Result)
	}
	return <-gone
}

// BenchmarkStart is the time from exec to the first session, and what a daemon at
// rest holds.
func BenchmarkStart(b *testing.B) {
	r := newRig(b, nil)
	program, err := underTest.pathOf(context.WithoutCancel(b.Context()))
	if err != nil {
		b.Fatal(err)
	}
	var took, floors []time.Duration
	for b.Loop() {
		site, err := newExecSite(b.TempDir(), execution.Case{})
		if err != nil {
			b.Fatal(err)
		}
		for range 10 { // the first one makes the journal
			begun := time.Now()
			d, err := startDaemon(b.Context(), program, site)
			if err != nil {
				b.Fatal(err)
			}
			c, err := client.Dial(b.Context(), client.Options{URL: d.ws, Token: d.tokens["agent"]})
			if err != nil {
				b.Fatal(err)
			}
			took, floors = append(took, time.Since(begun)), append(floors, floor(b))
			c.Close()
			if err := d.stop(syscall.SIGTERM); err != nil {
				b.Fatal(err)
			}
		}
	}
	idle := settledUsage(b.Context(), r.daemon.pid)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(percentile(took, 0.5).Microseconds())/1000, "ms-start")
	b.ReportMetric(float64(percentile(took, 0.5))/float64(percentile(floors, 0.5)), "x-F1-start")
	b.ReportMetric(float64(memory(r.daemon.pid, "VmRSS"))/(1<<20), "MiB-idle")
	b.ReportMetric(float64(familyMemory(r.daemon.pid))/(1<<20), "MiB-with-shells")
	b.ReportMetric(float64(fileSize(program))/(1<<20), "MiB-program")
	b.ReportMetric(float64(idle.Threads), "threads")
}

// BenchmarkIdleConnections is what a connection at rest costs the daemon, which has had none before.
func BenchmarkIdleConnections(b *testing.B) {
	const connections = 2000
	for b.Loop() {
		r := newRig(b, map[string]any{"limits": map[string]any{"connections": 2 * connections}})
		r.bash(r.dial(client.Options{}), "true", "off", client.Events{})
		before := memory(r.daemon.pid, "RssAnon")
		begun := time.Now()
		var open []*client.Client
		for range connections {
			open = append(open, r.dial(client.Options{}))
		}
		took := time.Since(begun)
		grown := memory(r.daemon.pid, "RssAnon") - before
		b.ReportMetric(float64(grown)/(1<<10)/connections, "KiB/connection")
		b.ReportMetric(float64(took.Microseconds())/connections, "µs/connect")
		for _, c := range open {
			c.Close()
		}
	}
	b.ReportMetric(0, "ns/op")
}

// familyMemory is the memory of a process and of all below it, in bytes; what they
// share is counted once (proc(5), Pss).
func familyMemory(pid int) (n int64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "Pss:" {
			kib, _ := strconv.ParseInt(fields[1], 10, 64)
			n += kib << 10
		}
	}
	for _, c := range childrenOf(pid) {
		n += familyMemory(c.pid)
	}
	return n
}

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
