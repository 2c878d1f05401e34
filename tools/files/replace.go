package files

import (
	"bytes"
	"sort"
	"strings"
)

// place is a range of bytes.
type place struct{ start, end int }

// finder finds text in a file whatever ends its lines: a "\n" in what is
// sought matches "\r\n" as well, unless a "\r" shows that the caller means bytes.
type finder struct {
	text []byte // with "\r\n" as "\n" where that is wanted
	crlf []int  // where in text a "\n" stands for "\r\n"
}

func newFinder(content []byte, sought string) finder {
	endings := bytes.Count(content, []byte("\r\n"))
	if endings == 0 || strings.Contains(sought, "\r") || !strings.Contains(sought, "\n") {
		return finder{text: content}
	}
	f := finder{text: make([]byte, 0, len(content)-endings), crlf: make([]int, 0, endings)}
	for {
		line, rest, found := bytes.Cut(content, []byte("\r\n"))
		f.text = append(f.text, line...)
		if !found {
			return f
		}
		f.crlf = append(f.crlf, len(f.text))
		f.text = append(f.text, '\n')
		content = rest
	}
}

// original is the place in the file of a place in text.
func (f finder) original(at int) int { return at + sort.SearchInts(f.crlf, at) }

// find returns where sought stands, without overlap, at most most times. Where
// one is wanted, a second place that overlaps the only one counts: which of them
// is meant is not clear.
func (f finder) find(sought string, most int, one bool) []place {
	var found []place
	for from := 0; len(found) < most; {
		i := bytes.Index(f.text[from:], []byte(sought))
		if i < 0 && one && len(found) == 1 {
			from -= len(sought) - 1
			i = bytes.Index(f.text[from:], []byte(sought))
		}
		if i < 0 {
			break
		}
		at := from + i
		found = append(found, place{f.original(at), f.original(at + len(sought))})
		from = at + len(sought)
	}
	return found
}

// replaceAt puts text into each place and leaves every other byte alone.
func replaceAt(content []byte, places []place, text string, endings bool) []byte {
	e := lineEndings{content: content, next: -1}
	out := make([]byte, 0, len(content)+len(places)*len(text))
	last := 0
	for _, p := range places {
		out = append(out, content[last:p.start]...)
		if endings && e.crlf(p) {
			out = append(out, strings.ReplaceAll(text, "\n", "\r\n")...)
		} else {
			out = append(out, text...)
		}
		last = p.end
	}
	return append(out, content[last:]...)
}

// lineEndings tells the line ending that is in use at a place. Places are asked
// for in order, so that each byte is looked at once.
type lineEndings struct {
	content []byte
	next    int // the first "\n" at or after the place asked for last
	ended   bool
}

// crlf reports whether the first line that ends at or after the beginning of p,
// or else the last of the file, ends in "\r\n".
func (e *lineEndings) crlf(p place) bool {
	if e.next < p.start && !e.ended {
		if i := bytes.IndexByte(e.content[p.start:], '\n'); i >= 0 {
			e.next = p.start + i
		} else {
			e.ended = true
			e.next = bytes.LastIndexByte(e.content, '\n')
		}
	}
	return e.next > 0 && e.content[e.next-1] == '\r'
}
