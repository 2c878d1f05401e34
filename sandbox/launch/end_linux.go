package launch

import (
	"slices"
	"time"

	"github.com/toold/toold/sandbox/internal/helper"
)

// reap waits at most endWithin for the end of the killed helper, since a process in device I/O only dies when that
// returns. It reports whether the helper has ended.
func (p *Process) reap() bool {
	return waited(func() {
		_ = p.cmd.Wait() // its status says nothing about the command
		p.via.wait()
	})
}

func waited(wait func()) bool {
	reaped := make(chan struct{})
	// Ends with wait. It may outlive the caller.
	go func() {
		wait()
		close(reaped)
	}()
	return closes(reaped, endWithin)
}

// Stuck reports whether killed processes of the call are still blocked in the kernel. It may be called after End.
func (p *Process) Stuck() bool { return p.stuck }

// sweepOrphans kills what is left of an unconfined call that killed its helper, and reports whether nothing remains.
// A killed process loses its environment before it closes its files, so its end is awaited by its pid. Processes in a
// session of their own with an empty environment are missed.
func sweepOrphans(pid int, cookie string) bool {
	find := func() []helper.Proc { return helper.Orphans(pid, cookie) }
	var killed []helper.Proc
	for begun := time.Now(); time.Since(begun) < endWithin; time.Sleep(10 * time.Millisecond) {
		killed = append(killed, helper.Sweep(find)...)
		killed = slices.DeleteFunc(killed, helper.Proc.Gone)
		if len(killed) == 0 && len(find()) == 0 {
			return true
		}
	}
	return false
}
