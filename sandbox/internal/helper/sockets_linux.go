//go:build linux && (amd64 || arm64)

package helper

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Without namespaces, a call shares the machine's network and IPC. A third filter refuses both, besides the main one
// and that of others_linux.go.

// between lists the calls with which processes of a user communicate without files.
func between() []uint32 {
	return []uint32{
		unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL,
		unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
	}
}

// watching lists the calls that create file watches. Their limits are shared with the user's other programs, and no
// namespace limits a call. Landlock does not prevent watching hidden files.
func watching() []uint32 { return append([]uint32{unix.SYS_INOTIFY_INIT1}, watchingHere()...) }

// socketsFilter allows socket pairs and, unless offline, network sockets. Connections of local sockets could not be
// judged.
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
