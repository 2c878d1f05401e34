//go:build linux && !amd64 && !arm64

package helper

import "golang.org/x/sys/unix"

func restrictOthers(*Spec) error { return unix.ENOSYS }

func threadCount() (uint32, error) { return 0, unix.ENOSYS }
