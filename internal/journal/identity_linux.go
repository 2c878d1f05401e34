package journal

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// bootID changes with every boot of the machine, and differs between pid namespaces.
func bootID() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	namespace, _ := os.Readlink("/proc/self/ns/pid")
	return strings.TrimSpace(string(boot)) + "/" + namespace
}

// startTime is when this process started; 0 when that cannot be read.
func startTime() uint64 {
	b, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0
	}
	// The name in field 2 may hold anything, so count from its last bracket: the start
	// time is the twentieth field after it.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 20 {
		return 0
	}
	start, _ := strconv.ParseUint(string(fields[19]), 10, 64)
	return start
}
