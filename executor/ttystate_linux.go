package executor

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// ttyState is what decides how input is written to a terminal.
type ttyState struct {
	lines   bool // canonical mode
	edits   bool // the line editor is on; with EXTPROC it is off, and every byte is passed on at once
	pending bool // input is unread
}

// readTTYState reads the state from the master. Only a poll of the slave flushes data in transit. The mode is read
// after it, so that it is the mode in which nothing was pending, unless it has just changed.
func readTTYState(master *os.File) (p ttyState, err error) {
	err = withFD(master, func(fd int) error {
		slave, err := openSlave(fd)
		if err != nil {
			return err
		}
		defer unix.Close(slave)
		if p.pending, err = readable(slave); err != nil {
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

// openSlave opens the slave without its path, which may lead elsewhere in another mount namespace.
func openSlave(master int) (slave int, err error) {
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

// readable reports whether a read would not block.
func readable(fd int) (bool, error) {
	ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	err := uninterrupted(func() error {
		_, err := unix.Poll(ready, 0)
		return err
	})
	return ready[0].Revents&unix.POLLIN != 0, err
}

// uninterrupted retries on EINTR: Go's runtime sends many signals.
func uninterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// setBypass turns the line editor off, or on again, by EXTPROC (RFC 1184): the terminal still reports canonical mode.
// Errors are ignored, since a closed terminal has no mode.
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
