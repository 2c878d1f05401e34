package journal

import (
	"os"
	"strconv"
	"strings"
)

// Identity names a process beyond the reuse of its pid. The zero Identity names none.
type Identity struct {
	PID   int
	Start uint64 // clock ticks since boot (proc_pid_stat(5), field 22)
	Boot  string // /proc/sys/kernel/random/boot_id, and the pid namespace
}

// Self returns the identity of this process; only the pid where the system has no start times.
func Self() Identity {
	return Identity{PID: os.Getpid(), Start: startTime(), Boot: bootID()}
}

// String returns the stored form.
func (id Identity) String() string {
	return strconv.Itoa(id.PID) + " " + strconv.FormatUint(id.Start, 10) + " " + id.Boot
}

// sameBoot reports whether both are of one boot of the machine.
func (id Identity) sameBoot(other Identity) bool {
	boot, _, _ := strings.Cut(id.Boot, "/")
	others, _, _ := strings.Cut(other.Boot, "/")
	return boot != "" && boot == others
}

func parseIdentity(s string) Identity {
	pid, rest, _ := strings.Cut(s, " ")
	start, boot, _ := strings.Cut(rest, " ")
	id := Identity{Boot: boot}
	var err error
	if id.PID, err = strconv.Atoi(pid); err == nil {
		id.Start, err = strconv.ParseUint(start, 10, 64)
	}
	if err != nil {
		return Identity{}
	}
	return id
}
