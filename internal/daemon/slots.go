package daemon

import "golang.org/x/sys/unix"

// connectionSlots returns how many connections of confined calls may be open at the same time: each takes six
// descriptors, and half of the process's descriptors are reserved for other uses.
func connectionSlots() int {
	const most = 16 << 10
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil || limit.Cur > 12*most {
		return most
	}
	return max(1, int(limit.Cur/12))
}
