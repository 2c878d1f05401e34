// Package display makes untrusted text safe to show: Clean and Mark for a model, Visible for an approver, Screen for
// a terminal.
package display

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Clean converts terminal output for a model: it removes escape sequences (ECMA-48), keeps the last
// state of a line rewritten by carriage returns, backspaces or the sequences for them, also after the cursor
// has moved up to it, replaces CRLF by LF and invalid UTF-8 by U+FFFD, and shows other control characters as
// ^X or, without visible effect, drops them. An unfinished sequence ends with its line.
func Clean(text []byte) string {
	c := cleaner{out: make([]byte, 0, len(text)), moves: maxMoved}
	for len(text) > 0 {
		if text[0] == 0x1b {
			n := sequence(text)
			if n > 2 && text[1] == '[' {
				c.redraw(string(text[2:n-1]), text[n-1])
			}
			text = text[n:]
			continue
		}
		r, size := utf8.DecodeRune(text)
		c.put(r)
		text = text[size:]
	}
	for _, line := range slices.Backward(c.below[c.unused():]) {
		c.out = append(append(c.out, '\n'), line...)
	}
	return string(c.out)
}

// Limits of what the cursor can move up over: lines, and bytes in all.
const (
	maxBelow = 200
	maxMoved = 16 << 20
)

type cleaner struct {
	out     []byte // up to the line with the cursor
	line    int
	rewrite bool     // the next text replaces the line
	below   [][]byte // the lines below that of the cursor, the next one last
	moves   int      // bytes that the cursor may still move up over
}

// unused returns how many of the last lines are empty.
func (c *cleaner) unused() int {
	n := slices.IndexFunc(c.below, func(line []byte) bool { return len(line) > 0 })
	if n < 0 {
		return len(c.below)
	}
	return n
}

// up moves the cursor up by n lines.
func (c *cleaner) up(n int) {
	atStart := c.rewrite || len(c.out) == c.line
	for ; n > 0 && c.line > 0 && len(c.below) < maxBelow; n-- {
		line := c.out[c.line:]
		above := bytes.LastIndexByte(c.out[:c.line-1], '\n') + 1
		if c.moves -= len(c.out) - above; c.moves < 0 {
			return
		}
		c.below = append(c.below, bytes.Clone(line))
		c.out, c.line, c.rewrite = c.out[:c.line-1], above, atStart
	}
}

// down begins the next line, which may be there already.
func (c *cleaner) down() {
	c.out = append(c.out, '\n')
	c.line, c.rewrite = len(c.out), false
	if last := len(c.below) - 1; last >= 0 {
		c.out, c.below, c.rewrite = append(c.out, c.below[last]...), c.below[:last], true
	}
}

func (c *cleaner) put(r rune) {
	switch {
	case r == '\n':
		c.down()
	case r == '\r':
		c.rewrite = true
	case r == '\b':
		_, n := utf8.DecodeLastRune(c.out[c.line:])
		c.out = c.out[:len(c.out)-n]
	case strings.ContainsRune("\a\x0e\x0f", r) || r >= 0x80 && r < 0xa0:
	case r != '\t' && r < 0x20 || r == 0x7f:
		c.text('^', r^0x40)
	default:
		c.text(r)
	}
}

// redraw follows a CSI sequence that erases, or moves the cursor to the left, up or down.
func (c *cleaner) redraw(params string, final byte) {
	if final == 'J' && strings.Trim(params, "0") == "" { // to the end of the screen
		c.below, final = nil, 'K'
	}
	c.vertical(params, final)
	width := utf8.RuneCount(c.out[c.line:])
	back, erase := redraw(params, final, width)
	switch {
	case erase, c.rewrite && final == 'K':
		c.out = c.out[:c.line]
	case back == width:
		c.rewrite = true
	}
	for range back % max(width, 1) {
		c.put('\b')
	}
}

func (c *cleaner) vertical(params string, final byte) {
	n, err := strconv.Atoi(cmp.Or(params, "1"))
	switch {
	case err != nil:
	case final == 'A' || final == 'F':
		c.up(max(n, 1))
		c.rewrite = c.rewrite || final == 'F'
	case final == 'B' || final == 'E':
		for n = max(n, 1); n > 0 && len(c.below) > 0; n-- {
			c.down()
		}
	}
}

// redraw returns how far a CSI sequence (ECMA-48: CHA to the first column, CUB) moves the cursor back from
// the end of a line of that width, and whether it erases what is before it (EL).
func redraw(params string, final byte, width int) (back int, erase bool) {
	n, err := strconv.Atoi(cmp.Or(params, "0"))
	switch {
	case err != nil || n < 0:
		return 0, false
	case final == 'G' && n <= 1:
		return width, false
	case final == 'D':
		return min(max(n, 1), width), false
	}
	return 0, final == 'K' && n > 0
}

func (c *cleaner) text(runes ...rune) {
	if c.rewrite {
		c.out, c.rewrite = c.out[:c.line], false
	}
	for _, r := range runes {
		c.out = utf8.AppendRune(c.out, r)
	}
}

// sequence returns the length of the escape sequence at the start of p. An invalid byte ends it.
func sequence(p []byte) int {
	if len(p) < 2 {
		return len(p)
	}
	switch p[1] {
	case '[':
		n := 2 + span(p[2:], 0x30, 0x3f)
		n += span(p[n:], 0x20, 0x2f)
		return n + min(1, span(p[n:], 0x40, 0x7e))
	case ']', 'P', 'X', '^', '_':
		return 2 + stringEnd(p[2:])
	default:
		n := 1 + span(p[1:], 0x20, 0x2f)
		return n + min(1, span(p[n:], 0x30, 0x7e))
	}
}

func span(p []byte, low, high byte) int {
	n := 0
	for n < len(p) && p[n] >= low && p[n] <= high {
		n++
	}
	return n
}

// stringEnd returns the length of a control string with its terminator, or up to the end of the line.
func stringEnd(p []byte) int {
	for n := 0; n < len(p); n++ {
		switch {
		case p[n] == '\a':
			return n + 1
		case p[n] == 0x1b && n+1 < len(p) && p[n+1] == '\\':
			return n + 2
		case p[n] == '\n' || p[n] == 0x1b:
			return n
		}
	}
	return len(p)
}
