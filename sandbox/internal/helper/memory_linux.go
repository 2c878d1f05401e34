package helper

import (
	"fmt"
	"os"
	"time"
)

// usageEvery is how often it is looked at what a call uses. The overshoot of
// memory is what can be allocated in that time.
const usageEvery = 100 * time.Millisecond

// watchUsage kills the call when its processes together have more private memory
// than allowed, and tells when there are as many as allowed. Without a control group
// that bounds memory nothing better is possible.
func (h *holder) watchUsage() {
	for {
		time.Sleep(usageEvery)
		all := Processes()
		h.noteFull(all, 0)
		if h.spec.MemoryBytes > 0 && privateMemory(h.pick(all)) > h.spec.MemoryBytes {
			send(Event{Kind: EventLimit, Text: LimitMemory})
			h.kill()
		}
	}
}

func privateMemory(processes []Proc) (sum uint64) {
	for _, p := range processes {
		sum += privateBytes(p.PID)
	}
	return sum
}

func privateBytes(pid int) uint64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	var size, resident, shared uint64
	if _, bad := fmt.Sscan(string(b), &size, &resident, &shared); err != nil || bad != nil || shared > resident {
		return 0
	}
	return (resident - shared) * uint64(os.Getpagesize())
}
