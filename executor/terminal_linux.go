package executor

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const (
	defaultRows = 40
	defaultCols = 120
)

// eof is the character that ends a terminal's input: VEOF, ^D.
const eof = 4

// endOfInput returns several EOF characters: each ends one read, and a shell and its children read more than once.
// They are few, since a program that reads single keys gets all of them; keepEnded writes more when they are used up.
func endOfInput() []byte { return bytes.Repeat([]byte{eof}, 16) }

// openTerminal opens a pseudo-terminal, close-on-exec, without echo and output translation.
func openTerminal(rows, cols uint16) (master, slave *os.File, err error) {
	if master, slave, err = openPair(); err != nil {
		return nil, nil, fmt.Errorf("cannot open a terminal: %w", err)
	}
	err = errors.Join(withFD(slave, byteExact), setSize(master, rows, cols))
	if err != nil {
		master.Close()
		slave.Close()
		return nil, nil, fmt.Errorf("cannot set up a terminal: %w", err)
	}
	return master, slave, nil
}

// openPair opens both sides (pty(7), ioctl_tty(2)): the master nonblocking, so that deadlines work; the slave through
// the master, whatever is mounted on /dev/pts.
func openPair() (master, slave *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, &os.PathError{Op: "open", Path: "/dev/ptmx", Err: err}
	}
	master = os.NewFile(uintptr(fd), "/dev/ptmx")
	if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		master.Close()
		return nil, nil, fmt.Errorf("cannot unlock its other side: %w", err)
	}
	number, err := unix.IoctlGetUint32(fd, unix.TIOCGPTN)
	other := -1
	if err == nil {
		other, err = openSlave(fd)
	}
	if err != nil {
		master.Close()
		return nil, nil, fmt.Errorf("cannot open its other side: %w", err)
	}
	return master, os.NewFile(uintptr(other), fmt.Sprintf("/dev/pts/%d", number)), nil
}

func byteExact(fd int) error {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	t.Oflag &^= unix.OPOST
	t.Lflag &^= unix.ECHO | unix.ECHONL
	t.Iflag |= unix.IUTF8
	return unix.IoctlSetTermios(fd, unix.TCSETS, t)
}

func setSize(master *os.File, rows, cols uint16) error {
	size := unix.Winsize{Row: cmp.Or(rows, defaultRows), Col: cmp.Or(cols, defaultCols)}
	return withFD(master, func(fd int) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &size) })
}

// withFD calls use with the descriptor. Unlike Fd, it keeps the file in the poller.
func withFD(f *os.File, use func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	if outer := raw.Control(func(fd uintptr) { err = use(int(fd)) }); outer != nil {
		return outer
	}
	return err
}

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool {
	return withFD(f, func(fd int) error {
		_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		return err
	}) == nil
}

// Probe returns an error if no pseudo-terminal can be opened.
func Probe() error {
	master, slave, err := openTerminal(0, 0)
	if err != nil {
		return fmt.Errorf("%w; see that /dev/pts is mounted and that /proc/sys/kernel/pty/max is not reached", err)
	}
	return errors.Join(master.Close(), slave.Close())
}
