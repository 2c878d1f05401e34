//go:build linux && !amd64 && !arm64

package helper

import "golang.org/x/sys/unix"

// onPassingThread runs f, in which restrictCalls refuses.
func onPassingThread(f func()) { f() }

// restrictOthers refuses, as restrictCalls does.
func restrictOthers(*Spec) (uint32, error) { return 0, unix.ENOSYS }

func lastThread() (uint32, error) { return 0, unix.ENOSYS }

// restrictSockets refuses too.
func restrictSockets(bool) error { return unix.ENOSYS }
