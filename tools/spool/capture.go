// Package spool records the output of calls: head and tail in memory, and all of it up to a limit in
// files, with secrets replaced. Writing never waits for a reader and never fails.
package spool

import (
	"fmt"
	"sync"

	"github.com/toold/toold/internal/redact"
	"github.com/toold/toold/tools"
)

// Options configure a Capture.
type Options struct {
	Dir        string   // of the call's files, created with the first byte; "": no files
	SpoolBytes int64    // limit of all files; 0: 64 MiB
	Keep       int      // bytes of head and of tail in memory, for each stream and for Combined; 0: 64 KiB
	Redact     []string // secrets to replace by "[redacted]"
	Call       string   // tool_call_id, for notices
}

// Capture records the output of one call, for concurrent use. Offsets count the bytes after secrets
// were replaced. Those of known shapes (package redact) are masked in the files, and in memory only
// if the other stream splits one. If the disk fails, the Capture only counts.
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

// Write records output of Stdout or Stderr. It does not retain p. After Close it does nothing.
func (c *Capture) Write(s tools.Stream, p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed && (s == tools.Stdout || s == tools.Stderr) {
		c.record(s, c.redact[s].pass(p, false))
	}
}

// record requires mu.
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

// maskSplit masks in Combined a secret that the other stream splits: it could not be recognised
// there.
func (c *Capture) maskSplit(s tools.Stream, offset int64, x redact.Span) {
	from := offset + int64(x.From)
	if x.Rest {
		from-- // it starts in earlier bytes
	}
	parts := c.turns.places(s, from, offset+int64(x.To))
	for i, at := range parts {
		if len(parts) > 1 && (i > 0 || !x.Rest) {
			c.windows[tools.Combined].mask(at[0], redact.Span{To: int(at[1] - at[0])}.Mask())
		}
	}
}

// notify requires mu.
func (c *Capture) notify() {
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// Close ends the output. It may be repeated.
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

// Changed returns a channel that is closed at the next output or by Close. Call it before Next.
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

// Totals returns how many bytes each stream has, and whether that is all.
func (c *Capture) Totals() (stdout, stderr int64, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.windows[tools.Stdout].total, c.windows[tools.Stderr].total, c.closed
}

// Text returns all of a stream up to limit bytes, else head and tail, together about limit bytes and at
// most twice Keep, around a notice that says how to get the rest.
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

// recorded says how to read what is recorded of a stream behind an offset.
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

// Next reads live output into buf: the bytes at offset, or the oldest later ones, from from. It does
// not cut a character whose rest may come. No bytes: there are none yet or, after Close, none any more.
func (c *Capture) Next(s tools.Stream, offset int64, buf []byte) (p []byte, from int64) {
	p, from, rest, closed := c.read(s, offset, buf)
	if from > offset {
		n := continued(p)
		p, from = p[n:], from+int64(n)
	}
	n := unfinished(p)
	isCut := rest > 0 && n == len(p)
	if isCut || rest == 0 && closed {
		return p, from // its rest will not come
	}
	return p[:len(p)-n], from
}

// Turn returns which stream continues Combined after the first bytes of each, and its length; 0:
// none yet.
func (c *Capture) Turn(after [2]int64) (s tools.Stream, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.turns.next(after)
}

// ReadAt returns at most most bytes at offset or the oldest later ones, which start at from; eof
// reports that nothing will follow.
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

// read joins in buf the bytes in memory and in files. rest counts the stream's bytes after those read.
func (c *Capture) read(s tools.Stream, offset int64, buf []byte) (p []byte, from, rest int64, closed bool) {
	from, p = max(offset, 0), buf[:0]
	for len(p) < len(buf) {
		at, had := from+int64(len(p)), len(p)
		var oldest int64
		p, oldest = c.kept(p, s, at, len(buf)-had)
		if len(p) == had && oldest > at {
			// The files are read without the lock, so that the writer never waits.
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

// kept appends to p the bytes in memory at an offset, or returns the oldest later offset in memory:
// earlier bytes may be in the files.
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
