package daemon

import "golang.org/x/sys/unix"

// connectionSlots bounds the open connections of calls: six descriptors each, half of the process's in all.
func connectionSlots() int {
	const most = 16 << 10
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil || limit.Cur > 12*most {
		return most
	}
	return max(1, int(limit.Cur/12))
}
