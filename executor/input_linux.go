package executor

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// feed carries out Input until it is closed or the command has ended.
//
// A terminal in its usual mode takes a line of at most 4096 bytes; what is
// longer is cut by the kernel. Data belongs through a pipe, in mode Off.
func (r *running) feed(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case in, open := <-r.Input:
			if !open {
				return
			}
			r.apply(in)
		}
	}
}

// apply carries out one input. What comes after the end of the input or of the
// command has no effect.
func (r *running) apply(in Input) {
	s := r.streams
	switch {
	case in.Rows > 0 && in.Cols > 0:
		if s.ctty == nil {
			return
		}
		for _, o := range s.out {
			_ = setSize(o.file, in.Rows, in.Cols)
		}
	case in.Signal != "":
		if sig := unix.SignalNum(signalName(in.Signal)); sig != 0 {
			r.process.Signal(syscall.Signal(sig))
		}
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
