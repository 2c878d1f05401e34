package journal

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// bootID changes with every boot of the machine.
func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}

// processStart reads when a process started. ok is false when there is none.
func processStart(pid int) (start uint64, zombie, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false, false
	}
	// The name in field 2 may hold anything, so count from its last bracket:
	// the state is the first field after it, the start time the twentieth.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 20 {
		return 0, false, false
	}
	start, err = strconv.ParseUint(string(fields[19]), 10, 64)
	state := fields[0][0]
	return start, state == 'Z' || state == 'X', err == nil
}
