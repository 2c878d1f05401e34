package files

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
)

type hunk struct {
	line    int      // line of the patch, from 1
	anchors []string // preceding lines of the file
	lines   []string // each prefixed by "+", "-" or a space
	spare   int      // number of last lines that were sent without a space, and so may not be lines of the file
	eof     bool     // the hunk is at the end of the file
}

func (h hunk) without(mark byte) []string {
	var list []string
	for _, line := range h.lines {
		if line[0] != mark {
			list = append(list, line[1:])
		}
	}
	return list
}

// patched is a file being patched. Positions are offsets in folded, so that a line costs no more memory than its
// bytes.
type patched struct {
	folded []byte // the lines without their endings, each preceded and followed by "\n"
	at     int    // position of the first line not in out
	rest   []byte // content from that line on
	ending string // ending of the line before; at the end, that of the file's last line
	open   bool   // the last line is unterminated
	out    bytes.Buffer
	end    string // ending of the last line in out; written before another line, or at the end if ended
	ended  bool
}

// newPatched sets a byte order mark aside, unless the hunks contain it.
func newPatched(content []byte, hunks []hunk) *patched {
	f := &patched{at: 1, rest: content, ending: "\n"}
	f.out.Grow(len(content) + 64<<10) // most patches add less
	if text, marked := bytes.CutPrefix(content, []byte(bom)); marked && !slices.ContainsFunc(hunks, hunk.hasBOM) {
		f.out.WriteString(bom)
		f.rest = text
	}
	f.folded = append(make([]byte, 0, len(f.rest)+2), '\n')
	for piece := range bytes.SplitSeq(f.rest, []byte("\r\n")) {
		f.folded = append(append(f.folded, piece...), '\n')
	}
	if f.open = len(f.rest) > 0 && !bytes.HasSuffix(f.rest, []byte("\n")); !f.open {
		f.folded = f.folded[:len(f.folded)-1]
	}
	return f
}

func (h hunk) hasBOM() bool {
	return strings.Contains(strings.Join(slices.Concat(h.anchors, h.lines), ""), bom)
}

func applyHunks(ctx context.Context, hunks []hunk, file target, content []byte) (made, error) {
	if why := notText(content, true); why != "" {
		return made{}, problem("input", "cannot patch %s: %s", file.name(), why)
	}
	f := newPatched(content, hunks)
	for i, h := range hunks {
		if ctx.Err() != nil {
			return made{}, ctx.Err()
		}
		h, start, why := f.place(h)
		if why != "" {
			return made{}, problem("input", "nothing changed: hunk %d of %s (line %d of the patch) %s", i+1, file.name(), h.line, why)
		}
		f.change(h, start)
	}
	f.copyTo(len(f.folded))
	if f.ended {
		f.out.WriteString(f.end)
	}
	return made{after: f.out.Bytes(), replacements: int64(len(hunks))}, nil
}

// next returns the first line that is not in out, and its ending. An unterminated line has the ending of the line
// before.
func (f *patched) next() (line []byte, end string, ended bool) {
	line, _, ended = bytes.Cut(f.rest, []byte("\n"))
	if !ended {
		return line, f.ending, false
	}
	if text, crlf := bytes.CutSuffix(line, []byte("\r")); crlf {
		return text, "\r\n", true
	}
	return line, "\n", true
}

func (f *patched) skip(line []byte, end string, ended bool) {
	f.at, f.ending = f.at+len(line)+1, end
	if f.rest = f.rest[len(line):]; ended {
		f.rest = f.rest[len(end):]
	}
}

func (f *patched) copyTo(at int) {
	for f.at < at {
		line, end, ended := f.next()
		f.skip(line, end, ended)
		f.write(line, end, ended)
	}
}

func (f *patched) write(line []byte, end string, ended bool) {
	f.out.WriteString(f.end)
	f.out.Write(line)
	f.end, f.ended = end, ended
}

// New lines get the ending of their neighbours, and none at the end of a file without one.
func (f *patched) change(h hunk, start int) {
	f.copyTo(start)
	for _, line := range h.lines {
		switch line[0] {
		case '+':
			end := "\n"
			if !strings.HasSuffix(line, "\r") {
				_, end, _ = f.next()
			}
			f.write([]byte(line[1:]), end, !f.open)
		case '-':
			f.skip(f.next())
		default:
			f.copyTo(f.at + 1)
		}
	}
}

// place finds a hunk with its spare lines or, if that fails, without them.
func (f *patched) place(h hunk) (fits hunk, start int, why string) {
	start, why = f.find(h)
	if why != "" && h.spare > 0 {
		short := h
		short.lines = h.lines[:len(h.lines)-h.spare]
		if at, no := f.find(short); no == "" {
			return short, at, ""
		}
	}
	return h, start, why
}

func (f *patched) find(h hunk) (start int, why string) {
	from := f.at
	for _, anchor := range h.anchors {
		behind := f.behind(anchor, from)
		if behind < 0 {
			return 0, fmt.Sprintf("belongs after the line %s, which does not follow line %d; %s", quote([]string{anchor}), f.number(from)-1, f.nearest([]string{anchor}))
		}
		from = behind
	}
	old := h.without('+')
	switch {
	case len(old) > 0 && f.repeats(h, old, from):
		return f.before(from), ""
	case len(old) > 0:
		return f.locate(h, old, from)
	case h.eof || len(f.folded) == 1:
		return len(f.folded), ""
	case len(h.anchors) > 0:
		return from, ""
	}
	return 0, fmt.Sprintf("does not say where to add its lines; begin it with lines of the file prefixed by a space, with \"@@ \" and a line, or end it with %q", endOfFile)
}

// behind returns the position after the next line that equals the anchor, or -1.
func (f *patched) behind(anchor string, from int) int {
	for from < len(f.folded) {
		line, _, _ := bytes.Cut(f.folded[from:], []byte("\n"))
		if from += len(line) + 1; string(bytes.TrimSpace(line)) == anchor {
			return from
		}
	}
	return -1
}

// before returns the position of the line before the one at a position.
func (f *patched) before(at int) int { return bytes.LastIndexByte(f.folded[:at-1], '\n') + 1 }

// number returns the line number of a position, from 1.
func (f *patched) number(at int) int { return bytes.Count(f.folded[:at], []byte("\n")) }

// between returns lines in the form of folded.
func between(lines []string) []byte { return []byte("\n" + strings.Join(lines, "\n") + "\n") }

// repeats reports whether a hunk begins with its last anchor as context instead of following it.
func (f *patched) repeats(h hunk, old []string, from int) bool {
	if len(h.anchors) == 0 || h.lines[0][0] != ' ' {
		return false
	}
	sought := between(old)
	at := f.before(from) - 1
	if !bytes.HasPrefix(f.folded[at:], sought) {
		return false
	}
	if h.eof {
		return at+len(sought) == len(f.folded)
	}
	return f.index(sought, from) < 0
}

func (f *patched) locate(h hunk, old []string, from int) (start int, why string) {
	sought := between(old)
	if h.eof {
		if start = len(f.folded) - len(sought) + 1; start >= from && bytes.HasSuffix(f.folded, sought) {
			return start, ""
		}
		return 0, "is not at the end of the file; " + f.nearest(old)
	}
	start = f.index(sought, from)
	if start < 0 {
		if before := f.index(sought, 1); before >= 0 {
			return 0, fmt.Sprintf("is on line %d, before the preceding hunk or \"@@\"; put the hunks in the order of the file", f.number(before))
		}
		return 0, "does not occur in it; " + f.nearest(old)
	}
	if len(h.anchors) > 0 {
		return start, ""
	}
	if next := f.index(sought, start+1); next >= 0 {
		return 0, fmt.Sprintf("occurs on line %d and on line %d. Add more lines of context, or \"@@ \" and a line above the right one", f.number(start), f.number(next))
	}
	return start, ""
}

// index returns the first position from another on where sought is found, or -1.
func (f *patched) index(sought []byte, from int) int {
	i := bytes.Index(f.folded[from-1:], sought)
	if i < 0 {
		return -1
	}
	return from + i
}

func (f *patched) nearest(old []string) string {
	return notFound(f.folded[1:], strings.Join(old, "\n"))
}
