//go:build linux && !amd64 && !arm64

package helper

import "golang.org/x/sys/unix"

// onPassingThread runs f, in which restrictCalls fails.
func onPassingThread(f func()) { f() }

func restrictAll(uint32) error { return unix.ENOSYS }

func restrictOthers(*Spec) (uint32, error) { return 0, unix.ENOSYS }

func threadCount() (uint32, error) { return 0, unix.ENOSYS }

func lastThread() (uint32, error) { return 0, unix.ENOSYS }

func restrictSockets(bool) error { return unix.ENOSYS }
