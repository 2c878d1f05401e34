package helper

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// usageEvery is how often it is looked at what a call uses. The overshoot of
// memory is what can be allocated in that time.
const usageEvery = 100 * time.Millisecond

// watchUsage kills the call when its processes together have more memory than
// allowed, and tells when there are as many as allowed. Without a control group
// that bounds memory nothing better is possible.
func (h *holder) watchUsage() {
	runtime.LockOSThread() // one of those that were there before the call: see restrictOthers
	defer runtime.UnlockOSThread()
	var shared sharedMemory
	again := time.NewTicker(usageEvery)
	defer again.Stop()
	for {
		select {
		case <-h.over:
			return
		case <-again.C:
		}
		all := Processes()
		h.noteFull(all, 0)
		if h.spec.MemoryBytes > 0 && h.overMemory(h.pick(all), &shared) {
			send(Event{Kind: EventLimit, Text: LimitMemory})
			h.kill()
		}
	}
}

func (h *holder) overMemory(processes []Proc, shared *sharedMemory) bool {
	f, err := os.Open("/proc/self/statm")
	if err != nil {
		return true // nothing can be looked at: somebody took the descriptors away
	}
	f.Close()
	private := privateMemory(processes)
	now := sharedNow()
	growth := shared.growth(now)
	if private+now <= h.spec.MemoryBytes {
		return false // whoever has what is shared
	}
	held, mapped := heldBy(processes)
	return private+held+min(growth, mapped) > h.spec.MemoryBytes
}

func privateMemory(processes []Proc) (sum uint64) {
	for _, p := range processes {
		sum += privateBytes(p.PID)
	}
	return sum
}

// ownFields are the lines of /proc/PID/status (proc_pid_status(5)) about memory that is
// the process's alone. Page tables count: a process that touches few bytes of many
// mappings has gigabytes of them and nothing else.
func ownFields() []string { return []string{"RssAnon", "VmPTE", "VmSwap", "HugetlbPages"} }

func privateBytes(pid int) (sum uint64) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0 // gone
	}
	for line := range strings.Lines(string(b)) {
		name, rest, _ := strings.Cut(line, ":")
		var kilobytes uint64
		if slices.Contains(ownFields(), name) {
			_, _ = fmt.Sscan(rest, &kilobytes)
			sum += kilobytes << 10
		}
	}
	return sum
}
