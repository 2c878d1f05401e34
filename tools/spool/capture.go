// Package spool records the output of calls: head and tail in memory, and everything up to a limit in files, with
// secrets replaced. Writing does not wait for readers and does not fail.
package spool

import (
	"fmt"
	"sync"

	"github.com/toold/toold/internal/redact"
	"github.com/toold/toold/tools"
)

// Options configures a Capture.
type Options struct {
	Dir        string   // directory for the call's files, created on demand; "": no files
	SpoolBytes int64    // limit for all files; 0: 64 MiB
	Keep       int      // bytes of head and of tail in memory for each stream and Combined; 0: 64 KiB
	Redact     []string // secrets to replace with "[redacted]"
	Call       string   // tool_call_id, for notices
}

// Capture records the output of one call. It is safe for concurrent use. Offsets count bytes after redaction. Secrets
// with known formats (package redact) are masked in files, but in memory only if the other stream splits one. After a
// disk error the files are no longer written.
type Capture struct {
	dir  string
	call string

	mu      sync.Mutex
	redact  [2]redactor
	tokens  [2]redact.Finder
	windows [3]window // by Stream
	turns   turns
	spool   spoolWriter
	changed chan struct{} // closed at the next change; may be nil
	sum     string        // set by Close
	closed  bool
}

// NewCapture returns a Capture.
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
	c.redact = [2]redactor{newRedactor(o.Redact), newRedactor(o.Redact)}
	return c
}

// Write records output of Stdout or Stderr. It does not retain p, and does nothing after Close.
func (c *Capture) Write(s tools.Stream, p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed && (s == tools.Stdout || s == tools.Stderr) {
		c.record(s, c.redact[s].pass(p, false))
	}
}

// record adds redacted output. The caller holds mu.
func (c *Capture) record(s tools.Stream, p []byte) {
	if len(p) == 0 {
		return
	}
	c.windows[s].add(p)
	c.windows[tools.Combined].add(p)
	c.turns.add(s, int64(len(p)))
	found := c.tokens[s].Find(p)
	for _, x := range found {
		c.maskSplit(s, c.windows[s].total-int64(len(p)), x)
	}
	c.spool.write(s, p, found)
	c.notify()
}

// maskSplit masks a secret in Combined that output of the other stream splits, since readers could not recognize it.
func (c *Capture) maskSplit(s tools.Stream, offset int64, x redact.Span) {
	from := offset + int64(x.From)
	if x.Rest {
		from-- // it begins in earlier bytes
	}
	parts := c.turns.places(s, from, offset+int64(x.To))
	for i, at := range parts {
		if len(parts) > 1 && (i > 0 || !x.Rest) {
			c.windows[tools.Combined].mask(at[0], redact.Span{To: int(at[1] - at[0])}.Mask())
		}
	}
}

// The caller holds mu.
func (c *Capture) notify() {
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

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
	if c.dir != "" {
		c.sum = total(c.spool.sums)
	}
	c.closed = true
	c.notify()
}

// Changed returns a channel that is closed by the next output or by Close. Call Changed before Next.
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

// Totals returns the size of each stream so far, and whether the output has ended.
func (c *Capture) Totals() (stdout, stderr int64, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.windows[tools.Stdout].total, c.windows[tools.Stderr].total, c.closed
}

// Text returns a stream up to limit bytes. A longer one is returned as head and tail, together about limit bytes and
// at most twice Keep, around a notice that says how to get the rest.
func (c *Capture) Text(s tools.Stream, limit int) (text []byte, truncated bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	head, tail, missing := c.windows[s].cut(max(limit, 0))
	if missing == 0 {
		return append(head, tail...), false
	}
	notice := fmt.Sprintf("\n[… %d of %d bytes omitted; %s …]\n", missing, c.windows[s].total, c.recorded(s, len(head)))
	return append(append(head, notice...), tail...), true
}

// recorded says how to read the recorded part of a stream after an offset.
func (c *Capture) recorded(s tools.Stream, offset int) string {
	kept := c.spool.sizes[tools.Stdout] + c.spool.sizes[tools.Stderr]
	if s != tools.Combined {
		kept = c.spool.sizes[s]
	}
	command := fmt.Sprintf("bash_output {\"call_id\": %q, \"stream\": %q, \"offset\": %d} returns", c.call, s, offset)
	switch {
	case kept >= c.windows[s].total:
		return command + " them"
	case kept > int64(offset):
		return fmt.Sprintf("%s those up to byte %d, the others are not kept", command, kept)
	}
	return "they are not kept"
}

// Next reads live output into buf from offset or, if that is dropped, from the oldest later byte; from is where p
// begins. It does not split a character whose rest may follow. p is empty if there are no bytes yet or, after Close,
// no more.
func (c *Capture) Next(s tools.Stream, offset int64, buf []byte) (p []byte, from int64) {
	p, from, rest, closed := c.read(s, offset, buf)
	if from > offset {
		n := continued(p)
		p, from = p[n:], from+int64(n)
	}
	n := unfinished(p)
	isCut := rest > 0 && n == len(p)
	if isCut || rest == 0 && closed {
		return p, from // its rest will not follow
	}
	return p[:len(p)-n], from
}

// Turn returns which stream has the next bytes of Combined after the given bytes of each, and how many. n is 0 if
// there are none yet.
func (c *Capture) Turn(after [2]int64) (s tools.Stream, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.turns.next(after)
}

// ReadAt returns up to most bytes from offset or, if that is dropped, from the oldest later byte; from is where p
// begins. eof means that nothing will follow.
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

// read joins bytes from memory and files in buf. rest is the number of bytes in the stream after them.
func (c *Capture) read(s tools.Stream, offset int64, buf []byte) (p []byte, from, rest int64, closed bool) {
	from, p = max(offset, 0), buf[:0]
	for len(p) < len(buf) {
		at, had := from+int64(len(p)), len(p)
		var oldest int64
		p, oldest = c.kept(p, s, at, len(buf)-had)
		if len(p) == had && oldest > at {
			// Files are read without the lock, so that the writer does not wait.
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

// kept appends to p the bytes at an offset that are in memory. If there are none, oldest is the next offset in memory;
// bytes before it may be in files.
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
