//go:build linux && (amd64 || arm64)

package helper

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Without namespaces of its own a call shares the machine's network and its memory
// between processes. A third filter takes both away, beside the one that every call
// has and the one of shared_linux.go.

// between are the calls by which processes of a user reach each other without files.
func between() []uint32 {
	return []uint32{
		unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL,
		unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
	}
}

// watching are the calls that begin to watch files. What a user has of inotify(7) is
// shared with the user's other programs, no namespace bounds what a call takes of it,
// and Landlock does not keep it from watching what is hidden.
func watching() []uint32 { return append([]uint32{unix.SYS_INOTIFY_INIT1}, watchingHere()...) }

// socketsFilter leaves pairs of sockets, and unless offline those of the machine's
// network. Nobody would judge where a local one is connected to.
func socketsFilter(offline bool) []bpf.Instruction {
	p := one(bpf.LoadAbsolute{Off: offsetNumber, Size: 4})
	for _, nr := range append(between(), watching()...) {
		p = append(p, when(nr, answer(unix.EPERM))...)
	}
	if offline {
		p = append(p, when(unix.SYS_SOCKET, answer(unix.EPERM))...)
	} else {
		p = append(p, when(unix.SYS_SOCKET, append(one(argument(0)), oneOf(unix.AF_INET, unix.AF_INET6)...)...)...)
	}
	return append(p, allow())
}

// restrictSockets puts the third filter on the calling thread and on what it forks.
func restrictSockets(offline bool) error {
	_, err := install(socketsFilter(offline), 0)
	return err
}
