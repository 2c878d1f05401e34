package executor

import (
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// pendingInputs is how many inputs may wait for a command that does not read.
// Beyond it the sender waits too.
const pendingInputs = 64

// feed carries out Input until it is closed or the command has ended. Data that
// nobody reads does not hold up the signals that come after it.
//
// A terminal in its usual mode takes a line of at most 4096 bytes; what is
// longer is cut by the kernel. Data belongs through a pipe, in mode Off.
func (r *running) feed(done <-chan struct{}) {
	data := make(chan Input, pendingInputs)
	var writer sync.WaitGroup
	// Ends after feed; a write that hangs ends with the deadline that comes with done.
	writer.Go(func() {
		for in := range data {
			r.write(in)
		}
	})
	defer writer.Wait()
	defer close(data)
	for {
		select {
		case <-done:
			return
		case in, open := <-r.Input:
			if !open {
				return
			}
			if r.control(in) {
				continue
			}
			select {
			case data <- in:
			case <-done:
				return
			}
		}
	}
}

// control carries out a signal or a window size, and reports whether in was one.
func (r *running) control(in Input) bool {
	switch {
	case in.Rows > 0 && in.Cols > 0:
		if r.streams.ctty == nil {
			return true
		}
		for _, o := range r.streams.out {
			_ = setSize(o.file, in.Rows, in.Cols)
		}
		return true
	case in.Signal != "":
		if sig := unix.SignalNum(signalName(in.Signal)); sig != 0 {
			r.process.Signal(syscall.Signal(sig))
		}
		return true
	}
	return false
}

// write passes data or the end on to the command. What comes after its end or
// the input's has no effect.
func (r *running) write(in Input) {
	s := r.streams
	switch {
	case !r.Stdin:
	case in.EOF && s.ctty != nil:
		_, _ = s.input.Write(endOfInput())
	case in.EOF:
		_ = s.input.Close()
	case len(in.Data) > 0:
		_, _ = s.input.Write(in.Data)
	}
}

// signalName accepts "INT" and "sigint" for SIGINT.
func signalName(s string) string {
	s = strings.ToUpper(s)
	if !strings.HasPrefix(s, "SIG") {
		s = "SIG" + s
	}
	return s
}
