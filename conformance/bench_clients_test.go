//go:build linux

package conformance

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toold/toold/client"
)

// BenchmarkClients is many clients that call "true" without pause, laid beside as
// many goroutines that run it: the rates, and the processor time of a call, which
// bounds the rate of a machine that has nothing else to do.
func BenchmarkClients(b *testing.B) {
	for _, clients := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprint(clients), func(b *testing.B) { manyClients(b, newRig(b, nil), clients) })
	}
	free := map[string]any{"profile": "danger-full-access", "i_understand_full_access": true}
	b.Run("8-unconfined", func(b *testing.B) { manyClients(b, newRig(b, map[string]any{"sandbox": free}), 8) })
}

func manyClients(b *testing.B, r *rig, clients int) {
	b.Helper()
	var agents []*client.Client
	for range clients {
		agents = append(agents, r.dial(client.Options{}))
	}
	var ours, plain, daemon, programs, bare time.Duration
	calls := max(256, 2*clients)
	for b.Loop() {
		self, children := processorTime(r.daemon.pid)
		begun := time.Now()
		crowd(clients, calls, func(w int) { r.bash(agents[w], "true", "off", client.Events{}) })
		middle := time.Now()
		self2, children2 := processorTime(r.daemon.pid)
		own := childrenTime(b)
		crowd(clients, calls, func(int) { floor(b) })
		ours, plain = ours+middle.Sub(begun), plain+time.Since(middle)
		daemon, programs, bare = daemon+self2-self, programs+children2-children, bare+childrenTime(b)-own
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(calls*b.N)/ours.Seconds(), "calls/s")
	b.ReportMetric(float64(plain)/float64(ours), "x-rate-of-F1")
	b.ReportMetric(float64(daemon)/float64(bare), "x-cpu-daemon")
	b.ReportMetric(float64(programs)/float64(bare), "x-cpu-started")
}

// processorTime is what a process has used, and its children, those that live
// included.
func processorTime(pid int) (self, children time.Duration) {
	self, children = usedTime(pid)
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		pids, _ := os.ReadFile(list)
		for _, word := range strings.Fields(string(pids)) {
			child, _ := strconv.Atoi(word)
			own, ended := usedTime(child)
			children += own + ended
		}
	}
	return self, children
}

// usedTime is what a process has used, and its children that have ended
// (proc_pid_stat(5), fields 14 to 17).
func usedTime(pid int) (self, children time.Duration) {
	const tick = 10 * time.Millisecond // sysconf(3), _SC_CLK_TCK
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0 // it has ended
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	at := func(field int) time.Duration {
		n, _ := strconv.ParseInt(string(fields[field-3]), 10, 64)
		return time.Duration(n) * tick
	}
	return at(14) + at(15), at(16) + at(17)
}

// childrenTime is what this process's children that have ended have used.
func childrenTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
