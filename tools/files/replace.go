package files

import (
	"bytes"
	"sort"
	"strings"
)

type extent struct{ start, end int }

// finder finds text. A "\n" also matches "\r\n", unless the sought text contains "\r".
type finder struct {
	text []byte // with "\n" for "\r\n" if that is wanted
	crlf []int  // offsets in text of each "\n" that was "\r\n"
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

func (f finder) original(at int) int { return at + sort.SearchInts(f.crlf, at) }

// find returns at most most occurrences of sought that do not overlap. With one, an occurrence that overlaps the
// first is returned too, since the choice is ambiguous.
func (f finder) find(sought string, most int, one bool) []extent {
	var found []extent
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
		found = append(found, extent{f.original(at), f.original(at + len(sought))})
		from = at + len(sought)
	}
	return found
}

func replaceAt(content []byte, spans []extent, text string, endings bool) []byte {
	e := lineEndings{content: content, next: -1}
	out := make([]byte, 0, len(content)+len(spans)*len(text))
	last := 0
	for _, p := range spans {
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

// lineEndings finds the line ending in use. Spans must be queried in ascending order.
type lineEndings struct {
	content []byte
	next    int // the first "\n" at or after the last span
	ended   bool
}

// crlf reports whether the first line that ends at or after p, or else the last line of the file, ends in "\r\n".
func (e *lineEndings) crlf(p extent) bool {
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
