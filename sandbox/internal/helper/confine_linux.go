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

// stage names the step that failed. The innermost name wins.
func stage(name string, err error) error {
	var named *stageError
	if err == nil || errors.As(err, &named) {
		return err
	}
	return &stageError{name, err}
}

// StageChdir is the stage whose failure is the caller's: the folder it asked for.
const StageChdir = "chdir"

// confine puts the process into its view and the calling thread, from which the shell is forked,
// under Landlock and the filter; the other threads keep watch without capabilities, or with those of
// keepCapabilities. It returns the version of Landlock and the broker, if any.
func (t *site) confine(s *Spec, handed []int) (abi int, b *broker, err error) {
	switch {
	case s.Given:
		err = checkGiven(s)
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
	// In the view, where a hidden or private folder is not the host's, and without
	// the capability to enter it all the same.
	if err := s.enter(); err != nil {
		return 0, nil, stage(StageChdir, err)
	}
	if s.Landlock {
		if abi, err = restrictFiles(s); err != nil {
			return 0, nil, stage("landlock", err)
		}
	}
	if s.Seccomp {
		if b, err = restrictCalls(s); err != nil {
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

// limit sets the limits of helper and shell; but see boundNumbers and limitNumbers.
func limit(s *Spec) error {
	for _, l := range []struct {
		name  string
		which int
		value uint64
		set   bool
	}{
		{"core size", unix.RLIMIT_CORE, 0, true},
		{"file size", unix.RLIMIT_FSIZE, s.FileBytes, s.FileBytes > 0},
	} {
		if !l.set {
			continue
		}
		var now syscall.Rlimit
		if err := syscall.Getrlimit(l.which, &now); err != nil {
			return stage("limit "+l.name, err)
		}
		value := min(l.value, now.Max) // an inherited lower limit stays
		if err := syscall.Setrlimit(l.which, &syscall.Rlimit{Cur: value, Max: value}); err != nil {
			return stage("limit "+l.name, err)
		}
	}
	return nil
}

// secureBits: uid 0 is no privilege any more, and none of it can be undone
// (capabilities(7), "The securebits flags").
const secureBits = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<5 | 1<<6 | 1<<7

// dropCapabilities takes all capabilities from every thread, or with Again from the calling one, and
// from the calling one, which forks, also every way to get them back.
func dropCapabilities(s *Spec) error {
	of := psx.Syscall3 // reaches threads that C made too, in binaries built with cgo
	switch {
	case s.Namespaces && !s.Given:
		if err := dropForGood(); err != nil {
			return err
		}
		if s.Again {
			of = unix.RawSyscall
		}
	case s.Listed || s.Given: // an ordinary user, whose programs get none
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
			break // past the last one this kernel knows
		} else if err != nil {
			return err
		}
	}
	return unix.Prctl(unix.PR_SET_SECUREBITS, secureBits, 0, 0, 0)
}

// setCapabilities makes these, all below 32, the permitted and effective ones.
func setCapabilities(syscall3 func(number, a, b, c uintptr) (uintptr, uintptr, syscall.Errno), these uint32) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Effective: these, Permitted: these}}
	_, _, e := syscall3(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])), 0)
	if e != 0 {
		return e
	}
	return nil
}
