package launch

import (
	"time"

	"github.com/toold/toold/sandbox/internal/helper"
)

// reap waits for the end of the killed helper, at most endWithin, since a process in device I/O
// dies only when that returns. It reports whether the helper is gone.
func (p *Process) reap() bool {
	return waited(func() {
		_ = p.cmd.Wait() // its status says nothing about the command
		p.via.wait()
	})
}

// waited reports whether wait returned within endWithin.
func waited(wait func()) bool {
	reaped := make(chan struct{})
	// Ends with wait. It may outlive the caller.
	go func() {
		wait()
		close(reaped)
	}()
	return closes(reaped, endWithin)
}

// Stuck reports whether processes of the call were killed but are still blocked in the kernel. It
// may be called after End.
func (p *Process) Stuck() bool { return p.stuck }

// sweepOrphans kills what an unconfined call left when it killed its helper, and reports whether
// nothing is left. It misses a process with its own session and an emptied environment.
func sweepOrphans(pid int, cookie string) bool {
	find := func() []helper.Proc { return helper.Orphans(pid, cookie) }
	for begun := time.Now(); time.Since(begun) < endWithin; time.Sleep(10 * time.Millisecond) {
		helper.Sweep(find)
		if len(find()) == 0 {
			return true
		}
	}
	return false
}
