package journal

import (
	"os"
	"strconv"
	"strings"
)

// Self names this process beyond the reuse of its pid: by the pid, the clock ticks from boot to its
// start (proc_pid_stat(5), field 22), /proc/sys/kernel/random/boot_id and the pid namespace. It has
// only the pid where the system has no start times.
func Self() string {
	return strconv.Itoa(os.Getpid()) + " " + strconv.FormatUint(startTime(), 10) + " " + bootID()
}

// sameBoot reports whether two processes are of one boot of the machine.
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
