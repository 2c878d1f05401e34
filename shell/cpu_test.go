package shell

import (
	"syscall"
	"time"
)

// processorTime is what this process has used so far, in all threads (getrusage(2)).
// Other work on the machine does not count.
func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
