package journal

import (
	"fmt"
	"os"
)

// Identity names a process beyond the reuse of its pid: by the time it started
// and by the boot of the machine. The zero Identity names nobody.
type Identity struct {
	PID   int
	Start uint64 // clock ticks from boot to its start (proc_pid_stat(5), field 22)
	Boot  string // random per boot (/proc/sys/kernel/random/boot_id)
}

// Self returns the identity of this process. Where the system does not tell
// start times, only the pid is set.
func Self() Identity {
	start, _, _ := processStart(os.Getpid())
	return Identity{PID: os.Getpid(), Start: start, Boot: bootID()}
}

// Alive tells whether the process runs. A zombie does not. Only processes of
// the caller's own pid namespace are seen.
func (id Identity) Alive() bool {
	if id.PID <= 0 || id.Boot != bootID() {
		return false
	}
	start, zombie, ok := processStart(id.PID)
	return ok && !zombie && start == id.Start
}

// String is the form in which an identity is stored.
func (id Identity) String() string { return fmt.Sprintf("%d %d %s", id.PID, id.Start, id.Boot) }

// parseIdentity reads what String wrote. What it cannot read names nobody.
func parseIdentity(s string) Identity {
	var id Identity
	if _, err := fmt.Sscanf(s, "%d %d %s", &id.PID, &id.Start, &id.Boot); err != nil && id.Boot != "" {
		return Identity{}
	}
	return id
}
