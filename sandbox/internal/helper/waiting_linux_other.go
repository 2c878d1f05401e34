//go:build linux && !amd64

package helper

import "golang.org/x/sys/unix"

// pollCalls are the calls that wait for any of several files.
func pollCalls() []int {
	return []int{unix.SYS_PPOLL, unix.SYS_PSELECT6, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2}
}
