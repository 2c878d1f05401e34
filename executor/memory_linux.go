package executor

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// fillsMemory is less than the time in which a command can fill the machine's memory.
const fillsMemory = 100 * time.Millisecond

// oomKills returns the number of OOM kills since boot (proc_vmstat(5)), or false if the kernel does
// not report it.
func oomKills() (n uint64, ok bool) {
	text, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0, false
	}
	return parseOOMKills(string(text))
}

func parseOOMKills(vmstat string) (n uint64, ok bool) {
	for line := range strings.Lines(vmstat) {
		if count, found := strings.CutPrefix(line, "oom_kill "); found {
			n, err := strconv.ParseUint(strings.TrimSpace(count), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

type memoryWatch struct {
	before uint64
	began  bool
}

// begin must be called when the command has run for fillsMemory.
func (w *memoryWatch) begin() { w.before, w.began = oomKills() }

// met reports whether the kernel has killed a process for lack of memory since begin.
func (w *memoryWatch) met() bool {
	if !w.began {
		return false
	}
	now, ok := oomKills()
	return ok && now > w.before
}
