package journal

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// bootID identifies a boot of the machine and a PID namespace in it.
func bootID() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	namespace, _ := os.Readlink("/proc/self/ns/pid")
	return strings.TrimSpace(string(boot)) + "/" + namespace
}

// startTime returns when this process started, in clock ticks since the boot (proc_pid_stat(5)), or 0.
func startTime() uint64 {
	b, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0
	}
	// Field 2, the name, may contain anything. Fields are counted from its closing parenthesis.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 20 {
		return 0
	}
	start, _ := strconv.ParseUint(string(fields[19]), 10, 64)
	return start
}
