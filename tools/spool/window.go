package spool

import (
	"bytes"
	"unicode/utf8"

	"github.com/toold/toold/internal/redact"
)

type window struct {
	keep  int // bytes of head, and of tail
	head  []byte
	tail  []byte // a ring buffer when full
	start int    // oldest byte of the ring
	total int64
}

func (w *window) add(p []byte) {
	w.total += int64(len(p))
	n := min(w.keep-len(w.head), len(p))
	w.head = append(w.head, p[:n]...)
	p = p[n:]
	if len(p) >= w.keep {
		w.tail = append(w.tail[:0], p[len(p)-w.keep:]...)
		w.start = 0
		return
	}
	n = min(w.keep-len(w.tail), len(p))
	w.tail = append(w.tail, p[:n]...)
	for p = p[n:]; len(p) > 0; p = p[n:] {
		n = copy(w.tail[w.start:], p)
		w.start = (w.start + n) % w.keep
	}
}

func (w *window) mask(offset int64, mask []byte) {
	for i, b := range mask {
		switch at := offset + int64(i); {
		case at < int64(len(w.head)):
			w.head[at] = b
		case at >= w.oldest():
			w.tail[(w.start+int(at-w.oldest()))%len(w.tail)] = b
		}
	}
}

func (w *window) oldest() int64 { return w.total - int64(len(w.tail)) }

func (w *window) whole() bool { return w.oldest() == int64(len(w.head)) }

// appendAt appends to p up to n contiguous bytes from an offset. There are none if these were dropped or do not exist
// yet.
func (w *window) appendAt(p []byte, offset int64, n int) []byte {
	if offset < int64(len(w.head)) {
		return append(p, w.head[offset:min(offset+int64(n), int64(len(w.head)))]...)
	}
	from := offset - w.oldest()
	if from < 0 || from >= int64(len(w.tail)) {
		return p
	}
	n = min(n, len(w.tail)-int(from))
	begin := (w.start + int(from)) % len(w.tail)
	first := w.tail[begin:min(begin+n, len(w.tail))]
	return append(append(p, first...), w.tail[:n-len(first)]...)
}

// cut returns head and tail, cut between characters. Secrets that the cut splits are masked.
func (w *window) cut(limit int) (head, tail []byte, missing int64) {
	if w.whole() && w.total <= int64(limit) {
		head = w.appendAt(make([]byte, 0, w.total), 0, w.keep)
		return w.appendAt(head, int64(len(w.head)), w.keep), nil, 0
	}
	half := min(limit/2, w.keep-w.keep/16) // leaves bytes to recognize a split secret
	head = redact.Part(w.head, 0, half)
	head = head[:len(head)-unfinished(head)]
	rest := w.appendAt(nil, w.oldest(), w.keep)
	if w.whole() {
		rest = append(bytes.Clone(w.head), rest...)
	}
	tail = redact.Part(rest, len(rest)-half, len(rest))
	tail = tail[continued(tail):]
	return head, tail, w.total - int64(len(head)) - int64(len(tail))
}

// unfinished returns the number of bytes of an incomplete character at the end of p, or 0 if they are invalid.
func unfinished(p []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		if last := p[len(p)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}

// continued returns the number of bytes at the beginning of p that continue a character.
func continued(p []byte) int {
	n := 0
	for n < len(p) && n < utf8.UTFMax-1 && !utf8.RuneStart(p[n]) {
		n++
	}
	return n
}
