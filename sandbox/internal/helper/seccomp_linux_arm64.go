package helper

import "golang.org/x/sys/unix"

const nativeArch = unix.AUDIT_ARCH_AARCH64

// refusedHere are the refused calls that only this machine has.
func refusedHere() []uint32 { return nil }

// watchingHere are the calls that begin to watch files and that only this machine has.
func watchingHere() []uint32 { return nil }

// ofModeHere are the calls about modes that only this machine has.
func ofModeHere() map[uint32]uint32 { return nil }

// openingHere are the calls that make files and that only this machine has.
func openingHere() map[uint32]uint32 { return nil }
