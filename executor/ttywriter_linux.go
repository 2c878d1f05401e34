package executor

import (
	"bytes"
	"os"
	"time"
)

// lineMax is the longest line in canonical mode, newline included (N_TTY(4)), and a buffer size
// that is safe in any mode.
const lineMax = 4095

// A ttyWriter writes input to the master of a terminal, from one goroutine, never more than the
// terminal's buffer: after a mode change a terminal drops what does not fit.
type ttyWriter struct {
	master *os.File
	open   int // bytes of the unfinished line in the line editor
	under  int // bytes since the buffer was last empty, open included
}

// write writes p. A line that is too long bypasses the line editor in pieces, so that it arrives
// whole; control characters have no effect in it. write returns when p is written and such a line
// is read, or false when done is closed before.
func (t *ttyWriter) write(p []byte, done <-chan struct{}) bool {
	ok := true
	for ok && len(p) > 0 {
		n := t.fitting(p)
		if n > 0 {
			ok = t.put(p[:n], done)
		} else {
			n = lineEnd(p)
			ok = t.pass(p[:n], done)
		}
		p = p[n:]
	}
	return ok
}

// fitting returns how much of p can be written as it is: some lines, or the start of one; 0 if
// the next line is too long.
func (t *ttyWriter) fitting(p []byte) (n int) {
	if state, err := readTTYState(t.master); err == nil && !state.edits {
		t.open = 0 // single-key mode has no lines
		return min(len(p), lineMax)
	}
	for n < len(p) {
		end := n + lineEnd(p[n:])
		if full := t.open + end; full > lineMax || full == lineMax && p[end-1] != '\n' {
			break
		}
		n = end
	}
	return n
}

func lineEnd(p []byte) int {
	if i := bytes.IndexByte(p, '\n'); i >= 0 {
		return i + 1
	}
	return len(p)
}

// put writes at most lineMax bytes; false if done was closed before.
func (t *ttyWriter) put(p []byte, done <-chan struct{}) bool {
	if t.under+len(p) > lineMax {
		if !t.drained(done) {
			return false
		}
		t.under = t.open
	}
	if _, err := t.master.Write(p); err != nil {
		return false
	}
	t.under += len(p)
	t.open += len(p)
	if i := bytes.LastIndexByte(p, '\n'); i >= 0 {
		t.open = len(p) - i - 1
	}
	return true
}

// pass writes p past the line editor and waits until it is read; false if done is closed.
func (t *ttyWriter) pass(p []byte, done <-chan struct{}) bool {
	if !t.drained(done) { // earlier lines stay lines
		return false
	}
	for len(p) > 0 {
		if !t.bypassed(done) {
			return false
		}
		n := min(len(p), lineMax)
		for n > 1 && p[n-1] == eof {
			n-- // alone at the end of the buffer it would be EOF even here
		}
		if _, err := t.master.Write(p[:n]); err != nil {
			return false
		}
		p = p[n:]
	}
	ok := t.bypassed(done)
	t.open, t.under = 0, 0
	setBypass(t.master, false)
	return ok
}

// bypassed turns the line editor off, and again if the program turns it on, until the
// terminal's buffer is empty.
func (t *ttyWriter) bypassed(done <-chan struct{}) bool {
	return t.await(done, func() bool {
		setBypass(t.master, true)
		state, err := readTTYState(t.master)
		return err == nil && !state.pending && !state.edits
	})
}

// drained waits until all written lines have been read; false if done is closed.
func (t *ttyWriter) drained(done <-chan struct{}) bool {
	return t.await(done, func() bool {
		state, err := readTTYState(t.master)
		return err == nil && !state.pending
	})
}

// await polls isSo. It also waits out a lack of descriptors or memory.
func (t *ttyWriter) await(done <-chan struct{}, isSo func() bool) bool {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for wait := 200 * time.Microsecond; ; wait = min(2*wait, 20*time.Millisecond) {
		select {
		case <-done:
			return false
		case <-pause.C:
		}
		if isSo() {
			return true
		}
		pause.Reset(wait)
	}
}
