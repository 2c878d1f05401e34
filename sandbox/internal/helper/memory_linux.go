package helper

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// usageEvery is the interval of checks. Between them, memory can exceed its limit.
const usageEvery = 100 * time.Millisecond

// watchUsage kills the call if its processes together exceed the memory limit, and reports when they reach the
// process limit. Without a control group that limits memory, nothing else limits it.
func (h *supervisor) watchUsage() {
	runtime.LockOSThread() // a thread that existed before the call; see restrictOthers
	defer runtime.UnlockOSThread()
	again := time.Tick(usageEvery)
	for {
		select {
		case <-h.over:
			return
		case <-again:
		}
		all := Processes()
		h.noteFull(all, 0)
		if h.spec.MemoryBytes > 0 && h.overMemory(h.pick(all)) {
			send(Event{Kind: EventLimit, Text: LimitMemory})
			h.kill()
		}
	}
}

func (h *supervisor) overMemory(processes []Proc) bool {
	f, err := os.Open("/proc/self/statm")
	if err != nil {
		return true // checks are impossible: something closed the descriptors
	}
	f.Close()
	segments, kernel := h.spec.systemV(len(processes))
	private := privateMemory(processes) + kernel
	now := sharedNow()
	growth := h.shared.growth(now)
	if private+now <= h.spec.MemoryBytes {
		return false // regardless of what is shared
	}
	held, all := heldBy(processes)
	held += segments
	if !all && !h.spec.Bounded {
		held = max(held, growth)
	}
	return private+held > h.spec.MemoryBytes
}

func privateMemory(processes []Proc) (sum uint64) {
	for _, p := range processes {
		sum += privateBytes(p)
	}
	return sum
}

// ownFields returns the lines of /proc/PID/status (proc_pid_status(5)) with private memory. Page tables count, since
// a process that touches few bytes of many mappings has gigabytes of them.
func ownFields() []string { return []string{"RssAnon", "VmPTE", "VmSwap", "HugetlbPages"} }

func privateBytes(p Proc) (sum uint64) {
	b, err := p.read("status")
	if err != nil {
		return 0 // it has ended
	}
	for line := range strings.Lines(string(b)) {
		name, rest, _ := strings.Cut(line, ":")
		if slices.Contains(ownFields(), name) {
			sum += kilobytes(rest)
		}
	}
	return sum
}

// kilobytes returns the size at the start of a text, such as "    12 kB".
func kilobytes(text string) (bytes uint64) {
	first, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	return number(first) << 10
}
