package helper

import (
	"fmt"
	"os"
	"time"
)

// memoryEvery is how often the memory of a call is summed up. The overshoot is
// what can be allocated in that time.
const memoryEvery = 100 * time.Millisecond

// watchMemory kills the call when its processes together have more private
// memory than allowed. Without a delegated cgroup nothing better is possible.
func (h *holder) watchMemory() {
	for {
		time.Sleep(memoryEvery)
		var sum uint64
		for _, p := range h.members() {
			sum += privateBytes(p.PID)
		}
		if sum > h.spec.MemoryBytes {
			send(Event{Kind: EventLimit, Text: LimitMemory})
			h.kill()
		}
	}
}

func privateBytes(pid int) uint64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	var size, resident, shared uint64
	if _, bad := fmt.Sscan(string(b), &size, &resident, &shared); err != nil || bad != nil || shared > resident {
		return 0
	}
	return (resident - shared) * uint64(os.Getpagesize())
}
