package helper

import "golang.org/x/sys/unix"

const nativeArch = unix.AUDIT_ARCH_X86_64

// refusedHere are the refused calls that only this machine has.
func refusedHere() []uint32 {
	return []uint32{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS__SYSCTL}
}

// watchingHere are the calls that begin to watch files and that only this machine has.
func watchingHere() []uint32 { return []uint32{unix.SYS_INOTIFY_INIT} }

// ofModeHere are the calls about modes that only this machine has.
func ofModeHere() map[uint32]uint32 {
	return map[uint32]uint32{unix.SYS_CHMOD: 1, unix.SYS_MKNOD: 1, unix.SYS_CREAT: 1}
}

// openingHere are the calls that make files and that only this machine has.
func openingHere() map[uint32]uint32 { return map[uint32]uint32{unix.SYS_OPEN: 1} }
