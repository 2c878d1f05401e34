package helper

import (
	"errors"
	"syscall"
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

// confine moves the process into its view, and puts the calling thread, which forks the shell, under Landlock and the
// filter. The other threads continue without capabilities, or with those of keepCapabilities. It returns the version
// of Landlock, and the broker if there is one.
func (t *site) confine(s *Spec, handed []int) (abi int, b *broker, err error) {
	switch {
	case s.External:
		err = checkExternal(s)
	case s.Namespaces:
		err = t.enter(s, handed)
	}
	if err != nil {
		return 0, nil, err
	}
	if err := limit(s); err != nil {
		return 0, nil, err
	}
	if err := dropCapabilities(s); err != nil {
		return 0, nil, stage("drop capabilities", err)
	}
	// In the view, where hidden and private directories are not the host's, and without the capability to bypass
	// permissions.
	if err := s.enter(); err != nil {
		return 0, nil, stage(StageChdir, err)
	}
	if s.Landlock {
		if abi, err = restrictFiles(s); err != nil {
			return 0, nil, stage("landlock", err)
		}
	}
	if s.Seccomp {
		if b, err = t.restrictCalls(s); err != nil {
			return 0, nil, stage("seccomp", err)
		}
	}
	if s.Listed {
		if err := restrictSockets(s.Offline); err != nil {
			return 0, nil, stage("seccomp", err)
		}
	}
	return abi, b, nil
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

// dropCapabilities drops all capabilities of every thread, or with Again of the calling thread, and keeps the calling
// thread, which forks, from regaining them.
func dropCapabilities(s *Spec) error {
	of := psx.Syscall3 // includes threads created by C in cgo binaries
	switch {
	case s.Namespaces && !s.External:
		if err := dropForGood(); err != nil {
			return err
		}
		if s.Again {
			of = unix.RawSyscall
		}
	case s.Listed || s.External: // an ordinary user, whose programs get none
	default:
		return nil
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	return setCapabilities(of, 0)
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
	return unix.Prctl(unix.PR_SET_SECUREBITS, secureBits, 0, 0, 0)
}

// setCapabilities sets the permitted and effective capabilities, which must all be below 32.
func setCapabilities(syscall3 func(number, a, b, c uintptr) (uintptr, uintptr, syscall.Errno), these uint32) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Effective: these, Permitted: these}}
	_, _, e := syscall3(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])), 0)
	if e != 0 {
		return e
	}
	return nil
}
