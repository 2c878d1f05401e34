package executor

import (
	"bytes"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lineMax is the longest line, newline included, that a terminal takes while it
// collects lines. N_TTY(4) has room for 4096 bytes and drops what is beyond.
const lineMax = 4095

// A typist writes to the master of a terminal what a person would type. It is used
// by one goroutine.
type typist struct {
	master *os.File
	open   int // bytes of the line that the terminal still collects
}

// write types p. A line that is too long for the terminal is passed on in pieces
// past its line editor, so that it arrives whole; control characters mean nothing
// then. It returns when the last piece is read, or when done is closed.
func (t *typist) write(p []byte, done <-chan struct{}) {
	if t.fits(p) {
		_, _ = t.master.Write(p)
		return
	}
	t.open = 0
	for len(p) > 0 && t.drained(done) {
		t.bypass(true) // again for each piece: the program may have set its own mode
		n := min(len(p), lineMax)
		if _, err := t.master.Write(p[:n]); err != nil {
			return
		}
		p = p[n:]
	}
	if t.drained(done) {
		t.bypass(false)
	}
}

// fits reports whether the terminal takes p as it is, and keeps count of the line
// that is open afterwards.
func (t *typist) fits(p []byte) bool {
	if lines, _, err := inputState(t.master); err != nil || !lines {
		t.open = 0
		return true // single keys have no lines
	}
	open := t.open
	for rest := p; ; {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			open += len(rest)
			break
		}
		if open+i+1 > lineMax {
			return false
		}
		open, rest = 0, rest[i+1:]
	}
	if open >= lineMax {
		return false
	}
	t.open = open
	return true
}

// bypass turns the line editor off or on. With EXTPROC, made for editing on the
// other side (RFC 1184), a terminal still says that it collects lines, but gives
// every byte as it comes.
func (t *typist) bypass(on bool) {
	_ = withFD(t.master, func(fd int) error {
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

// drained waits until everything typed has been read. It is false when done was
// closed or the terminal is gone.
func (t *typist) drained(done <-chan struct{}) bool {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for wait := 200 * time.Microsecond; ; wait = min(2*wait, 20*time.Millisecond) {
		select {
		case <-done:
			return false
		case <-pause.C:
		}
		_, pending, err := inputState(t.master)
		if err != nil || !pending {
			return err == nil
		}
		pause.Reset(wait)
	}
}

// inputState tells whether a terminal collects lines, and whether it has something
// to read. The other side is opened for the moment: only a poll there first takes
// what is still on its way.
func inputState(master *os.File) (lines, pending bool, err error) {
	err = withFD(master, func(fd int) error {
		mode, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			return err
		}
		lines = mode.Lflag&unix.ICANON != 0
		slave, _, no := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
		if no != 0 {
			return no
		}
		defer unix.Close(int(slave))
		ready := []unix.PollFd{{Fd: int32(slave), Events: unix.POLLIN}}
		_, err = unix.Poll(ready, 0)
		pending = ready[0].Revents&unix.POLLIN != 0
		return err
	})
	return lines, pending, err
}
