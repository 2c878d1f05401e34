// Package spool records what a call prints: in memory its beginning and its end, and in
// files all of it up to a bound, with secrets replaced.
//
// A Capture is written while the call runs and read at the pace of each reader, for whom
// nothing waits. A Spool reads the files of a call that has ended.
package spool

import (
	"fmt"
	"sync"

	"github.com/toold/toold/tools"
)

// Options configure a Capture. The zero value keeps 64 KiB of heads and
// of tails and no file.
type Options struct {
	Dir        string   // of the call's spool files; made at the first byte. Empty: no files
	SpoolBytes int64    // cap on the size of all spool files of the call; 0 = 64 MiB
	Keep       int      // bytes of head and of tail held in memory, of each stream and of both combined; 0 = 64 KiB
	Redact     []string // secrets that are replaced by "[redacted]"
	Call       string   // tool_call_id, for the notice of output that is left out
}

// Capture records what one call prints: in memory the head and the tail, in
// spool files all of it up to a cap. Writing never waits for a reader and
// never fails: where the disk does, recording in files stops and counting goes
// on. Offsets count the bytes of a stream after secrets were replaced.
//
// A Capture may be used concurrently. Close ends it; it can be read for ever.
type Capture struct {
	dir  string
	call string

	mu      sync.Mutex
	redact  [2]redactor
	windows [3]window // by Stream, Combined included
	turns   turns
	spool   spoolWriter
	changed chan struct{} // closed at the next change; nil while nobody waits
	closed  bool
}

// NewCapture makes a Capture. It touches no file yet.
func NewCapture(o Options) *Capture {
	if o.Keep <= 0 {
		o.Keep = 64 << 10
	}
	if o.SpoolBytes <= 0 {
		o.SpoolBytes = 64 << 20
	}
	c := &Capture{dir: o.Dir, call: o.Call, spool: spoolWriter{dir: o.Dir, left: o.SpoolBytes, stopped: o.Dir == ""}}
	for s := range c.windows {
		c.windows[s].keep = o.Keep
	}
	for s := range c.redact {
		c.redact[s] = newRedactor(o.Redact)
	}
	return c
}

// Write records output of Stdout or Stderr. p is not retained. After Close it
// does nothing.
func (c *Capture) Write(s tools.Stream, p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed && (s == tools.Stdout || s == tools.Stderr) {
		c.record(s, c.redact[s].pass(p, false))
	}
}

// record needs mu.
func (c *Capture) record(s tools.Stream, p []byte) {
	if len(p) == 0 {
		return
	}
	c.windows[s].add(p)
	c.windows[tools.Combined].add(p)
	c.turns.add(s, int64(len(p)))
	c.spool.write(s, p)
	c.notify()
}

// notify needs mu.
func (c *Capture) notify() {
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// Close marks the end of the output and closes the files. It may be called
// more than once.
func (c *Capture) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	for s := range c.redact {
		c.record(tools.Stream(s), c.redact[s].pass(nil, true))
	}
	c.spool.close()
	c.closed = true
	c.notify()
}

// Changed returns a channel that is closed when there is more to read than now
// or when Close was called. Take it before looking with Next, so that nothing
// is missed in between. After Close it is closed already.
func (c *Capture) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		done := make(chan struct{})
		close(done)
		return done
	}
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	return c.changed
}

// Totals tells how many bytes each stream has so far, and whether that is all.
func (c *Capture) Totals() (stdout, stderr int64, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.windows[tools.Stdout].total, c.windows[tools.Stderr].total, c.closed
}

// Text returns what a result shows of a stream: all of it if it has at most
// limit bytes, else head and tail of together about limit bytes (at most twice
// Keep) with a notice in between that tells how to get the rest.
func (c *Capture) Text(s tools.Stream, limit int) (text []byte, truncated bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	head, tail, missing := c.windows[s].cut(max(limit, 0))
	if missing == 0 {
		return append(head, tail...), false
	}
	notice := fmt.Sprintf("\n[… %d of %d bytes left out here; bash_output {\"call_id\": %q, \"stream\": %q, \"offset\": %d} returns them …]\n",
		missing, c.windows[s].total, c.call, s, len(head))
	return append(append(head, notice...), tail...), true
}

// Next reads into buf what is to be shown live of a stream: the bytes at offset or,
// where these are kept nowhere, the oldest later ones. from tells which; from >
// offset marks a gap. Characters are not cut at the end while their rest may still
// come. No bytes means that there are none yet, or at the end of a closed Capture
// that there will be none.
func (c *Capture) Next(s tools.Stream, offset int64, buf []byte) (p []byte, from int64) {
	p, from, rest, closed := c.read(s, offset, buf)
	if from > offset {
		n := continued(p)
		p, from = p[n:], from+int64(n)
	}
	n := unfinished(p)
	if rest == 0 && closed || rest > 0 && n == len(p) {
		return p, from // the character's rest will not come
	}
	return p[:len(p)-n], from
}

// Turn tells which stream Combined goes on with after the first bytes of each, and for
// how many bytes; 0 means that no more has come.
func (c *Capture) Turn(after [2]int64) (s tools.Stream, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.turns.next(after)
}

// ReadAt returns at most most bytes of a stream, byte for byte, also of
// Combined: those at offset or, where these are kept nowhere, the oldest later
// ones. from is the offset of the first; eof tells that nothing follows and
// nothing will.
func (c *Capture) ReadAt(s tools.Stream, offset int64, most int) (p []byte, from int64, eof bool) {
	left := c.total(s) - max(offset, 0)
	p, from, rest, closed := c.read(s, offset, make([]byte, max(0, min(left, int64(most)))))
	return p, from, closed && rest <= 0
}

func (c *Capture) total(s tools.Stream) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.windows[s].total
}

// read joins in buf what memory and files hold. rest counts the stream's bytes
// after those returned.
func (c *Capture) read(s tools.Stream, offset int64, buf []byte) (p []byte, from, rest int64, closed bool) {
	from, p = max(offset, 0), buf[:0]
	for len(p) < len(buf) {
		at, had := from+int64(len(p)), len(p)
		var oldest int64
		p, oldest = c.kept(p, s, at, len(buf)-had)
		if len(p) == had && oldest > at {
			// The files are read without the lock: the writer never waits.
			p = (&Spool{dir: c.dir}).read(p, s, at, int(min(oldest-at, int64(len(buf)-had))))
		}
		if len(p) > had {
			continue
		}
		if had > 0 || oldest <= at {
			break
		}
		from = oldest
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return p, from, c.windows[s].total - from - int64(len(p)), c.closed
}

// kept appends to p what memory holds at an offset, or tells from which later
// offset on it holds anything; what lies before that may be in the files.
func (c *Capture) kept(p []byte, s tools.Stream, at int64, most int) (more []byte, oldest int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &c.windows[s]
	if more = w.appendAt(p, at, most); len(more) > len(p) {
		return more, at
	}
	if s == tools.Combined && !c.closed {
		c.spool.flushOrder()
	}
	return p, w.oldest()
}
