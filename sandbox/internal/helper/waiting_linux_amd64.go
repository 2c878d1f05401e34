package helper

import "golang.org/x/sys/unix"

func pollCalls() []int {
	return []int{
		unix.SYS_POLL, unix.SYS_SELECT, unix.SYS_EPOLL_WAIT,
		unix.SYS_PPOLL, unix.SYS_PSELECT6, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2,
	}
}
