package executor

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// peer is the state of the command's side of a terminal.
type peer struct {
	lines   bool // it collects lines, and does not give single keys
	edits   bool // it does so itself; with EXTPROC it gives every byte as it comes
	pending bool // there is something to read
}

// lookAtPeer looks from the master. The other side is opened for the moment: only
// a poll there first takes what is still on its way. The mode is read after that,
// so that it is the one in which nothing was pending unless it has just changed.
func lookAtPeer(master *os.File) (p peer, err error) {
	err = withFD(master, func(fd int) error {
		if p.pending, err = hasInput(fd); err != nil {
			return err
		}
		mode, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			return err
		}
		p.lines = mode.Lflag&unix.ICANON != 0
		p.edits = p.lines && mode.Lflag&unix.EXTPROC == 0
		return nil
	})
	return p, err
}

// hasInput polls the other side.
func hasInput(master int) (bool, error) {
	slave, err := openPeer(master)
	if err != nil {
		return false, err
	}
	defer unix.Close(slave)
	return readable(slave)
}

// openPeer opens the other side (TIOCGPTPEER of ioctl_tty(2)).
func openPeer(master int) (slave int, err error) {
	const mode = unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC
	err = uninterrupted(func() error {
		fd, _, no := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, mode)
		if slave = int(fd); no != 0 {
			return no
		}
		return nil
	})
	return slave, err
}

// readable polls without waiting.
func readable(fd int) (bool, error) {
	ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	err := uninterrupted(func() error {
		_, err := unix.Poll(ready, 0)
		return err
	})
	return ready[0].Revents&unix.POLLIN != 0, err
}

// uninterrupted repeats a system call until no signal interrupts it. Even one that
// does not wait is interrupted by a signal that is on its way, and Go's runtime
// sends many.
func uninterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// setBypass turns the line editor off or on. With EXTPROC, made for editing on the
// other side (RFC 1184), a terminal still says that it collects lines, but gives
// every byte as it comes. A terminal that is gone has no mode to set.
func setBypass(master *os.File, on bool) {
	_ = withFD(master, func(fd int) error {
		mode, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			return err
		}
		was := mode.Lflag
		if mode.Lflag &^= unix.EXTPROC; on {
			mode.Lflag |= unix.EXTPROC
		}
		if mode.Lflag == was {
			return nil
		}
		return unix.IoctlSetTermios(fd, unix.TCSETS, mode)
	})
}
