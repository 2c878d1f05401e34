package files

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
)

type patched struct {
	file   target
	lines  []string // without their ends
	ends   []string // "\n" or "\r\n"; an unterminated last line has that of the one before
	folded string   // the lines, each between "\n"
	starts []int    // of lines in folded
	open   bool     // the last line is unterminated
	out    strings.Builder
	end    string // of the last line in out; written with another line or if ended
	ended  bool
	at     int // first line not in out
}

// newPatched keeps a byte order mark apart, unless the hunks name it.
func newPatched(file target, content []byte, hunks []hunk) *patched {
	f := &patched{file: file}
	rest := string(content)
	if text, marked := strings.CutPrefix(rest, bom); marked && !slices.ContainsFunc(hunks, hunk.hasBOM) {
		f.out.WriteString(bom)
		rest = text
	}
	end := "\n"
	for rest != "" {
		line, after, ended := strings.Cut(rest, "\n")
		if f.open = !ended; ended {
			end = "\n"
			if text, crlf := strings.CutSuffix(line, "\r"); crlf {
				line, end = text, "\r\n"
			}
		}
		f.lines, f.ends = append(f.lines, line), append(f.ends, end)
		rest = after
	}
	var b strings.Builder
	b.Grow(len(content) + 1)
	b.WriteByte('\n')
	for _, line := range f.lines {
		f.starts = append(f.starts, b.Len())
		b.WriteString(line)
		b.WriteByte('\n')
	}
	f.folded = b.String()
	return f
}

func (h hunk) hasBOM() bool {
	return strings.Contains(strings.Join(slices.Concat(h.anchors, h.lines), ""), bom)
}

func applyHunks(ctx context.Context, hunks []hunk, file target, content []byte) (made, error) {
	if why := notText(content, true); why != "" {
		return made{}, problem("input", "cannot patch %s: %s", file.name(), why)
	}
	f := newPatched(file, content, hunks)
	for i, h := range hunks {
		if ctx.Err() != nil {
			return made{}, ctx.Err()
		}
		start, why := f.find(h)
		if why != "" {
			return made{}, problem("input", "nothing changed: hunk %d of %s (line %d of the patch) %s", i+1, file.name(), h.line, why)
		}
		f.change(h, start)
	}
	f.copyTo(len(f.lines))
	if f.ended {
		f.out.WriteString(f.end)
	}
	return made{after: []byte(f.out.String()), replacements: int64(len(hunks))}, nil
}

func (f *patched) copyTo(line int) {
	for ; f.at < line; f.at++ {
		f.write(f.lines[f.at], f.ends[f.at], f.at < len(f.lines)-1 || !f.open)
	}
}

func (f *patched) write(line, end string, ended bool) {
	f.out.WriteString(f.end)
	f.out.WriteString(line)
	f.end, f.ended = end, ended
}

// New lines get the ending of their neighbours, and none at the end of a file without.
func (f *patched) change(h hunk, start int) {
	f.copyTo(start)
	for _, line := range h.lines {
		switch line[0] {
		case '+':
			end := "\n"
			if beside := min(f.at, len(f.lines)-1); beside >= 0 && !strings.HasSuffix(line, "\r") {
				end = f.ends[beside]
			}
			f.write(line[1:], end, !f.open)
		case '-':
			f.at++
		default:
			f.copyTo(f.at + 1)
		}
	}
}

func (f *patched) find(h hunk) (start int, why string) {
	from := f.at
	for _, anchor := range h.anchors {
		line := slices.IndexFunc(f.lines[from:], func(l string) bool { return strings.TrimSpace(l) == anchor })
		if line < 0 {
			return 0, fmt.Sprintf("belongs after the line %s, which does not follow line %d; %s", quote([]string{anchor}), from, f.nearest([]string{anchor}))
		}
		from += line + 1
	}
	old := h.without('+')
	switch {
	case len(old) > 0 && f.repeats(h, old, from):
		return from - 1, ""
	case len(old) > 0:
		return f.locate(h, old, from)
	case h.eof || len(f.lines) == 0:
		return len(f.lines), ""
	case len(h.anchors) > 0:
		return from, ""
	}
	return 0, fmt.Sprintf("does not say where to add its lines; begin it with lines of the file prefixed by a space, with \"@@ \" and a line, or end it with %q", endOfFile)
}

// repeats reports whether a hunk is not below its last anchor, but begins with it as context.
func (f *patched) repeats(h hunk, old []string, from int) bool {
	if len(h.anchors) == 0 || h.lines[0][0] != ' ' {
		return false
	}
	at, last := from-1, from-1+len(old)
	if last > len(f.lines) || !slices.Equal(f.lines[at:last], old) {
		return false
	}
	if h.eof {
		return last == len(f.lines)
	}
	return f.indexOne("\n"+strings.Join(old, "\n")+"\n", from) < 0
}

func (f *patched) locate(h hunk, old []string, from int) (start int, why string) {
	sought := "\n" + strings.Join(old, "\n") + "\n"
	if h.eof {
		if start = len(f.lines) - len(old); start >= from && strings.HasSuffix(f.folded, sought) {
			return start, ""
		}
		return 0, "is not at the end of the file; " + f.nearest(old)
	}
	start, next := f.index(sought, from)
	switch {
	case start < 0 && from > 0:
		if before, _ := f.index(sought, 0); before >= 0 {
			return 0, fmt.Sprintf("is on line %d, before the preceding hunk or \"@@\"; put the hunks in the order of the file", before+1)
		}
		fallthrough
	case start < 0:
		return 0, "does not occur in it; " + f.nearest(old)
	case next >= 0 && len(h.anchors) == 0:
		return 0, fmt.Sprintf("occurs on line %d and on line %d. Add more lines of context, or \"@@ \" and a line above the right one", start+1, next+1)
	}
	return start, ""
}

// index returns the first two lines from a line on at which sought is, or -1.
func (f *patched) index(sought string, from int) (first, second int) {
	if first = f.indexOne(sought, from); first < 0 {
		return -1, -1
	}
	return first, f.indexOne(sought, first+1)
}

func (f *patched) indexOne(sought string, from int) int {
	if from >= len(f.lines) {
		return -1
	}
	base := f.starts[from] - 1
	i := strings.Index(f.folded[base:], sought)
	if i < 0 {
		return -1
	}
	return sort.SearchInts(f.starts, base+i+1)
}

func (f *patched) nearest(old []string) string {
	return notFound([]byte(f.folded[1:]), strings.Join(old, "\n"))
}
