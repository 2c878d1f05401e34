package journal

import (
	"os"
	"strconv"
	"strings"
)

// Self returns a name of this process that a later process with the same pid does not have: pid, start time in clock
// ticks since boot (proc_pid_stat(5), field 22), /proc/sys/kernel/random/boot_id and the pid namespace. On systems
// without these it is the pid.
func Self() string {
	return strconv.Itoa(os.Getpid()) + " " + strconv.FormatUint(startTime(), 10) + " " + bootID()
}

func sameBoot(process, other string) bool {
	boot := bootOf(process)
	return boot != "" && boot == bootOf(other)
}

func bootOf(process string) string {
	_, started, _ := strings.Cut(process, " ")
	_, boot, _ := strings.Cut(started, " ")
	boot, _, _ = strings.Cut(boot, "/")
	return boot
}
