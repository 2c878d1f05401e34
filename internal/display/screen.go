package display

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Screen passes output on to a terminal: of escape sequences only complete SGR (ECMA-48, 8.3.117).
// It removes bells and backspaces, shows other control characters, and replaces invalid UTF-8 by U+FFFD.
// Text after a carriage return, or a sequence that redraws the line, replaces it: Redrawn comes between.
// An unfinished sequence ends with its line. Pieces may have any size. One goroutine writes at a time.
// Close resets the colours.
type Screen struct {
	// Width is the number of columns; 0 = unlimited. Longer lines are continued with a mark and without colours, so
	// that no part of one can be mistaken for a line of its own.
	Width int

	w       io.Writer
	column  int // upper limit of the columns in use
	state   screenState
	seq     []byte // unfinished CSI sequence or character
	out     []byte
	colored bool
	rewrite bool // after a carriage return
}

type screenState int

const (
	inText       screenState = iota
	inEscape                 // after ESC
	inEscapeRest             // after ESC and an intermediate byte
	inCSI
	inString // of OSC, DCS, SOS, PM and APC
	inStringEscape
)

const maxSGR = 128

// Redrawn is what a Screen writes where a line is replaced.
const Redrawn = "\r\x1b[K"

// NewScreen returns a Screen on a terminal.
func NewScreen(to io.Writer) *Screen { return &Screen{w: to} }

// Write writes the safe part of p.
func (s *Screen) Write(p []byte) (int, error) {
	s.out = s.out[:0]
	for _, b := range p {
		s.putByte(b)
	}
	if _, err := s.w.Write(s.out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close writes an unfinished character and resets the colours.
func (s *Screen) Close() error {
	s.out = s.out[:0]
	if s.state == inText && len(s.seq) > 0 {
		s.text("\ufffd")
	}
	s.seq, s.state = nil, inText
	if s.colored {
		s.out = append(s.out, "\x1b[0m"...)
	}
	s.colored = false
	_, err := s.w.Write(s.out)
	return err
}

func (s *Screen) putByte(b byte) {
	switch {
	case b == '\n' || b == 0x18 || b == 0x1a: // the last two cancel a sequence
		s.begin(inText)
		s.control(b)
	case s.state == inString:
		s.endString(b)
	case b == 0x1b:
		s.begin(inEscape)
	case s.state == inEscape || s.state == inEscapeRest:
		s.escape(b)
	case s.state == inStringEscape:
		s.begin(inText) // ESC \, or ESC and text
		if b != '\\' {
			s.escape(b)
		}
	case s.state == inCSI:
		s.csi(b)
	default:
		s.char(b)
	}
}

func (s *Screen) begin(state screenState) {
	if s.state == inText && len(s.seq) > 0 {
		s.text("\ufffd")
	}
	s.state, s.seq = state, s.seq[:0]
}

func (s *Screen) endString(b byte) {
	switch b {
	case '\a':
		s.begin(inText)
	case 0x1b:
		s.begin(inStringEscape)
	}
}

func (s *Screen) escape(b byte) {
	switch {
	case b >= 0x20 && b <= 0x2f:
		s.begin(inEscapeRest)
	case b < 0x20 || b >= 0x7f:
		s.begin(inText)
		s.char(b)
	case s.state == inEscapeRest:
		s.begin(inText)
	case b == '[':
		s.begin(inCSI)
	case strings.IndexByte("]PX^_", b) >= 0:
		s.begin(inString)
	default:
		s.begin(inText)
	}
}

func (s *Screen) csi(b byte) {
	switch {
	case b >= 0x20 && b <= 0x3f:
		if len(s.seq) <= maxSGR {
			s.seq = append(s.seq, b)
		}
	case b < 0x20 || b >= 0x7f:
		s.begin(inText)
		s.char(b)
	default:
		back, erase := redraw(string(s.seq), b, s.column)
		toStart := back > 0 && back == s.column
		s.rewrite = s.rewrite || erase || toStart
		if b == 'm' && isSGR(s.seq) {
			s.out = append(append(append(s.out, "\x1b["...), s.seq...), 'm')
			s.colored = true
		}
		s.begin(inText)
	}
}

// isSGR reports whether the parameters of a CSI m have no private or intermediate bytes.
func isSGR(params []byte) bool {
	return len(params) <= maxSGR && len(bytes.TrimLeft(params, "0123456789;:")) == 0
}

func (s *Screen) char(b byte) {
	if len(s.seq) == 0 && b < utf8.RuneSelf {
		s.control(b)
		return
	}
	if len(s.seq) > 0 && utf8.RuneStart(b) {
		s.begin(inText)
		s.char(b)
		return
	}
	s.seq = append(s.seq, b)
	if !utf8.FullRune(s.seq) {
		return
	}
	switch r, size := utf8.DecodeRune(s.seq); {
	case size < len(s.seq) || r == utf8.RuneError && size == 1:
		for range s.seq {
			s.text("\ufffd")
		}
	case r < 0xa0:
		s.text(codePoint(r))
	default:
		s.text(string(s.seq))
	}
	s.seq = s.seq[:0]
}

func (s *Screen) control(b byte) {
	switch {
	case b == '\n':
		s.out, s.rewrite, s.column = append(s.out, '\n'), false, 0
	case b == '\r':
		s.rewrite = true
	case strings.IndexByte("\a\b\x0e\x0f\x18\x1a", b) >= 0:
	case b < 0x20 && b != '\t' || b == 0x7f:
		s.text("^" + string(rune(b^0x40)))
	default:
		s.text(string(rune(b)))
	}
}

func (s *Screen) text(t string) {
	if s.rewrite {
		s.out, s.rewrite, s.column = append(s.out, Redrawn...), false, 0
	}
	if s.column += columns(t); s.Width > 0 && s.column > s.Width {
		s.out = append(s.out, "\x1b[0m\n"+continued...)
		s.column = len(continued) + columns(t)
	}
	s.out = append(s.out, t...)
}

const continued = "    | "

// columns returns an upper limit of the columns that a text takes.
func columns(t string) (n int) {
	for _, r := range t {
		switch {
		case r == '\t':
			n += 8
		case r < utf8.RuneSelf:
			n++
		default:
			n += 2
		}
	}
	return n
}

func codePoint(r rune) string { return fmt.Sprintf("⟨U+%04X⟩", r) }

// Columns returns the width of a terminal, or 0 for other files.
func Columns(f *os.File) int {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	columns := 0
	err = raw.Control(func(fd uintptr) {
		if size, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ); err == nil {
			columns = int(size.Col)
		}
	})
	if err != nil {
		return 0
	}
	return columns
}
