package executor

import (
	"bytes"
	"os"
	"time"
)

// lineMax is the length of the longest line in canonical mode, including the newline (N_TTY(4)). A buffer of this
// size is safe in any mode.
const lineMax = 4095

// A ttyWriter writes input to the master of a terminal. It never writes more than the terminal's buffer holds,
// because a terminal drops the excess when the mode changes. It is not safe for concurrent use.
type ttyWriter struct {
	master *os.File
	open   int // bytes of the unfinished line in the line editor
	under  int // bytes since the buffer was last empty, including open
}

// write writes p. It passes a line that is too long around the line editor in pieces, so that it arrives complete;
// control characters in it have no effect. write returns true when p is written and such a line has been read, or
// false when done is closed before.
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

// fitting returns how many bytes of p can be written unchanged: some lines, or the beginning of one; 0 if the next
// line is too long.
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

// put writes at most lineMax bytes. It returns false if done was closed before.
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

// pass writes p around the line editor and waits until it is read. It returns false if done is closed.
func (t *ttyWriter) pass(p []byte, done <-chan struct{}) bool {
	if !t.drained(done) { // earlier lines must remain lines
		return false
	}
	for len(p) > 0 {
		if !t.bypassed(done) {
			return false
		}
		n := min(len(p), lineMax)
		for n > 1 && p[n-1] == eof {
			n-- // alone at the end of the buffer, it would still be EOF
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

// bypassed turns the line editor off until the terminal's buffer is empty, and again whenever the program turns it
// on.
func (t *ttyWriter) bypassed(done <-chan struct{}) bool {
	return t.await(done, func() bool {
		setBypass(t.master, true)
		state, err := readTTYState(t.master)
		return err == nil && !state.pending && !state.edits
	})
}

// drained waits until all written lines have been read. It returns false if done is closed.
func (t *ttyWriter) drained(done <-chan struct{}) bool {
	return t.await(done, func() bool {
		state, err := readTTYState(t.master)
		return err == nil && !state.pending
	})
}

// await polls isSo. It also waits while descriptors or memory are exhausted.
func (t *ttyWriter) await(done <-chan struct{}, isSo func() bool) bool {
	for wait := 200 * time.Microsecond; !isSo(); wait = min(2*wait, 20*time.Millisecond) {
		select {
		case <-done:
			return false
		case <-time.After(wait):
		}
	}
	return true
}
