package executor

import (
	"bytes"
	"os"
	"time"
)

// lineMax is the longest line, newline included, that a terminal takes while it
// collects lines (N_TTY(4)), and the most that its buffer is sure to hold
// whatever mode its program sets.
const lineMax = 4095

// A typist writes to the master of a terminal what a person would type, from one goroutine. It
// never has more under way than the terminal's buffer holds: a terminal whose mode has changed
// drops what does not fit until something reads.
type typist struct {
	master *os.File
	open   int // bytes of the line that the terminal still collects
	under  int // bytes typed since the terminal last had none to read; the open line counts
}

// write types p. A line that is too long for the terminal is passed on in pieces
// past its line editor, so that it arrives whole; control characters mean nothing
// in it. It returns when p is typed and such a line is read, or when done is closed.
func (t *typist) write(p []byte, done <-chan struct{}) {
	for ok := true; ok && len(p) > 0; {
		n := t.fitting(p)
		if n > 0 {
			ok = t.put(p[:n], done)
		} else {
			n = lineEnd(p)
			ok = t.pass(p[:n], done)
		}
		p = p[n:]
	}
}

// fitting tells how much of p can be typed as it is: some lines, or the beginning
// of one; nothing when the next line is too long.
func (t *typist) fitting(p []byte) (n int) {
	if peer, err := lookAtPeer(t.master); err == nil && !peer.edits {
		t.open = 0 // single keys have no lines
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

// lineEnd is how long the first line of p is, newline included.
func lineEnd(p []byte) int {
	if i := bytes.IndexByte(p, '\n'); i >= 0 {
		return i + 1
	}
	return len(p)
}

// put types p, at most lineMax bytes. It is false when done was closed before.
func (t *typist) put(p []byte, done <-chan struct{}) bool {
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

// pass types p past the line editor and waits until it is read; false if done is closed.
func (t *typist) pass(p []byte, done <-chan struct{}) bool {
	if !t.drained(done) { // the lines before this one stay lines
		return false
	}
	for len(p) > 0 {
		if !t.bypassed(done) {
			return false
		}
		n := min(len(p), lineMax)
		for n > 1 && p[n-1] == eof {
			n-- // alone at the end of the buffer it would be the end of the input even here
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

// bypassed turns the line editor off and waits until the terminal has nothing to
// read. The program may turn it on meanwhile; then all begins again.
func (t *typist) bypassed(done <-chan struct{}) bool {
	return t.await(done, func() bool {
		setBypass(t.master, true)
		peer, err := lookAtPeer(t.master)
		return err == nil && !peer.pending && !peer.edits
	})
}

// drained waits until all typed lines have been read; false if done is closed.
func (t *typist) drained(done <-chan struct{}) bool {
	return t.await(done, func() bool {
		peer, err := lookAtPeer(t.master)
		return err == nil && !peer.pending
	})
}

// await asks until it is so. An answer that cannot be had now, for want of a
// descriptor or of memory, is awaited too.
func (t *typist) await(done <-chan struct{}, isSo func() bool) bool {
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
