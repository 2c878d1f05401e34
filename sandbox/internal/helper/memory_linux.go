package helper

import (
	"fmt"
	"os"
	"runtime"
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
	var shared sharedMemory
	for {
		time.Sleep(usageEvery)
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

func privateBytes(pid int) uint64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	var size, resident, shared uint64
	if _, bad := fmt.Sscan(string(b), &size, &resident, &shared); err != nil || bad != nil || shared > resident {
		return 0
	}
	return (resident - shared) * uint64(os.Getpagesize())
}
