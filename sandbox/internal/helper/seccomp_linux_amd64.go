package helper

import "golang.org/x/sys/unix"

const nativeArch = unix.AUDIT_ARCH_X86_64

// refusedHere lists refused calls that only this architecture has.
func refusedHere() []uint32 {
	return []uint32{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS__SYSCTL}
}

// watchingHere lists calls that create file watches and that only this architecture has.
func watchingHere() []uint32 { return []uint32{unix.SYS_INOTIFY_INIT} }

// ofModeHere is ofMode for calls that only this architecture has.
func ofModeHere() map[uint32]uint32 {
	return map[uint32]uint32{unix.SYS_CHMOD: 1, unix.SYS_MKNOD: 1, unix.SYS_CREAT: 1}
}

// openingHere is opening for calls that only this architecture has.
func openingHere() map[uint32]uint32 { return map[uint32]uint32{unix.SYS_OPEN: 1} }
