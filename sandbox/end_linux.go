package sandbox

import (
	"time"

	"github.com/toold/toold/sandbox/internal/helper"
)

// reap waits until the killed or ended helper is gone, which it is with the last
// process of its namespace, but at most endWithin: a process that waits for a
// device or a dead network file system dies only when that answers, and nobody
// can hurry it. It reports whether the helper is gone.
func (p *Process) reap() bool {
	reaped := make(chan struct{})
	// Ends with the helper. Nobody waits for it longer than endWithin.
	go func() {
		_ = p.cmd.Wait() // its status says nothing about the command
		p.via.wait()
		close(reaped)
	}()
	patience := time.NewTimer(endWithin)
	defer patience.Stop()
	select {
	case <-reaped:
		return true
	case <-patience.C:
		return false
	}
}

// Stuck reports whether processes of the call still wait in the kernel, killed
// but not gone. It may be called after End.
func (p *Process) Stuck() bool { return p.stuck }

// sweepOrphans removes what an unconfined call left when it killed its helper.
// A process that started its own session with an emptied environment is not
// found: only a namespace, which this profile renounces, has no such hole. It
// gives up on what cannot be killed, and reports whether nothing is left.
func sweepOrphans(pid int, cookie string) bool {
	find := func() []helper.Proc { return helper.Orphans(pid, cookie) }
	for range 100 {
		helper.Sweep(find)
		if len(find()) == 0 {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}
