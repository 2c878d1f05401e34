package helper

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

type stageError struct {
	stage string
	err   error
}

func (e *stageError) Error() string { return e.stage + ": " + e.err.Error() }
func (e *stageError) Unwrap() error { return e.err }

// stage adds the name of the failed step to an error. The innermost name is kept.
func stage(name string, err error) error {
	var named *stageError
	if err == nil || errors.As(err, &named) {
		return err
	}
	return &stageError{name, err}
}

// StageChdir is the stage that fails because of the caller: its directory.
const StageChdir = "chdir"

// confine moves the process into its view, and prepares what restricts the shell. The threads of the helper continue
// without capabilities, or with those of keepCapabilities.
func (t *site) confine(s *Spec, handed []int) (*restrictions, error) {
	var err error
	switch {
	case s.External:
		err = checkExternal(s)
	case s.Namespaces:
		err = t.enter(s, handed)
	}
	if err != nil {
		return nil, err
	}
	if err := limit(s); err != nil {
		return nil, err
	}
	if err := dropCapabilities(s); err != nil {
		return nil, stage("drop capabilities", err)
	}
	// In the view, where hidden and private directories are not the host's, and without the capability to bypass
	// permissions.
	if err := s.enter(); err != nil {
		return nil, stage(StageChdir, err)
	}
	return s.restrict()
}

// limit sets the limits of the helper and the shell, apart from those of boundNumbers and limitNumbers.
func limit(s *Spec) error {
	for _, l := range []struct {
		name  string
		which int
		value uint64
		set   bool
	}{
		{"core size", unix.RLIMIT_CORE, 0, true},
		{"file size", unix.RLIMIT_FSIZE, s.FileBytes, s.FileBytes > 0},
		// The kernel counts these per user, across all namespaces. Without any pending signals, no Go program of the
		// user could start, and so no helper: see syscall.AllThreadsSyscall.
		{"pending signals", unix.RLIMIT_SIGPENDING, 1024, true},
		{"bytes of message queues", unix.RLIMIT_MSGQUEUE, 128 << 10, true},
	} {
		if !l.set {
			continue
		}
		if err := lower(l.which, l.value); err != nil {
			return stage("limit "+l.name, err)
		}
	}
	return nil
}

// secureBits disables and locks the privileges of uid 0 (capabilities(7), "The securebits flags").
const secureBits = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<5 | 1<<6 | 1<<7

// dropCapabilities drops all capabilities of every thread, unless later calls need them: then only the shell has none.
func dropCapabilities(s *Spec) error {
	confined := s.Namespaces || s.Listed
	if s.Again || !confined {
		return nil
	}
	return setCapabilities(0)
}

// dropForGood keeps programs that the calling thread starts from having capabilities.
func dropForGood() error {
	for c := uintptr(0); c < 64; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); errors.Is(err, unix.EINVAL) {
			break // this kernel has no more capabilities
		} else if err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, secureBits, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
}

// setCapabilities sets the permitted and effective capabilities of every thread, including those created by C in cgo
// binaries. They must all be below 32. Ambient ones that are not permitted end (capabilities(7)).
func setCapabilities(these uint32) error {
	header, data := capabilities(these)
	if _, _, e := psx.Syscall3(unix.SYS_CAPSET, uintptr(unsafe.Pointer(header)), uintptr(unsafe.Pointer(data)), 0); e != 0 {
		return e
	}
	return nil
}

// capabilities returns the arguments of capset(2).
func capabilities(these uint32) (*unix.CapUserHeader, *[2]unix.CapUserData) {
	return &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &[2]unix.CapUserData{{Effective: these, Permitted: these}}
}
