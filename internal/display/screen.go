package display

import (
	"fmt"
	"io"
	"unicode/utf8"
)

// Screen passes the output of a call on to a person's terminal, which obeys it in
// nothing but colours: of escape sequences only SGR (ECMA-48, 8.3.117) goes through,
// and whole. The others (OSC, DCS, SOS, PM, APC, other CSI, single ESC), bells and
// backspaces are removed; other control characters, C1 too, are shown, and bytes that
// are no UTF-8 become U+FFFD. What follows a carriage return replaces its line. A
// sequence that is not finished ends with its line, so that it cannot hide the next.
//
// It may be written to in pieces of any size, by one goroutine at a time. Close ends
// the colours.
type Screen struct {
	to    io.Writer
	state screenState
	seq   []byte // of the CSI sequence, or of the character, that has begun
	out   []byte
	dyed  bool // colours are on
	back  bool // a carriage return came
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

// longestSGR is longer than any list of attributes that means something.
const longestSGR = 128

// NewScreen returns a Screen that writes to a terminal.
func NewScreen(to io.Writer) *Screen { return &Screen{to: to} }

// Write passes on what of p is safe. It reports an error of the terminal.
func (s *Screen) Write(p []byte) (int, error) {
	s.out = s.out[:0]
	for _, b := range p {
		s.next(b)
	}
	if _, err := s.to.Write(s.out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close ends a character that was begun, and colours.
func (s *Screen) Close() error {
	s.out = s.out[:0]
	if s.state == inText && len(s.seq) > 0 {
		s.text("\ufffd")
	}
	s.seq, s.state = nil, inText
	if s.dyed {
		s.out = append(s.out, "\x1b[0m"...)
	}
	s.dyed = false
	_, err := s.to.Write(s.out)
	return err
}

// next takes one byte.
func (s *Screen) next(b byte) {
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
		s.begin(inText) // ESC \, or ESC and what is no sequence any more
		if b != '\\' {
			s.escape(b)
		}
	case s.state == inCSI:
		s.csi(b)
	default:
		s.char(b)
	}
}

// begin leaves what was begun. A character that was cut off is shown as one.
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

// escape takes what follows ESC.
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
	case b == ']' || b == 'P' || b == 'X' || b == '^' || b == '_':
		s.begin(inString)
	default:
		s.begin(inText)
	}
}

// csi takes what follows ESC [.
func (s *Screen) csi(b byte) {
	switch {
	case b >= 0x20 && b <= 0x3f:
		if len(s.seq) <= longestSGR {
			s.seq = append(s.seq, b)
		}
	case b < 0x20 || b >= 0x7f:
		s.begin(inText)
		s.char(b)
	default:
		if b == 'm' && isSGR(s.seq) {
			s.out = append(append(append(s.out, "\x1b["...), s.seq...), 'm')
			s.dyed = true
		}
		s.begin(inText)
	}
}

// isSGR reports whether the parameters of a CSI m are attributes: a private or
// intermediate byte makes it another function.
func isSGR(params []byte) bool {
	for _, b := range params {
		if (b < '0' || b > '9') && b != ';' && b != ':' {
			return false
		}
	}
	return len(params) <= longestSGR
}

// char takes a byte of text.
func (s *Screen) char(b byte) {
	if len(s.seq) == 0 && b < utf8.RuneSelf {
		s.control(b)
		return
	}
	if len(s.seq) > 0 && utf8.RuneStart(b) {
		s.begin(inText) // the character before was cut off
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
		s.text(visible(r))
	default:
		s.text(string(s.seq))
	}
	s.seq = s.seq[:0]
}

// control takes a byte of ASCII.
func (s *Screen) control(b byte) {
	switch {
	case b == '\n':
		s.out, s.back = append(s.out, '\n'), false
	case b == '\r':
		s.back = true
	case b == '\a' || b == '\b' || b == 0x0e || b == 0x0f || b == 0x18 || b == 0x1a:
	case b < 0x20 && b != '\t' || b == 0x7f:
		s.text("^" + string(rune(b^0x40)))
	default:
		s.text(string(rune(b)))
	}
}

// text shows what is safe, in place of a line that was gone back on.
func (s *Screen) text(t string) {
	if s.back {
		s.out, s.back = append(s.out, "\r\x1b[K"...), false
	}
	s.out = append(s.out, t...)
}

// visible writes a character that could not be seen, or would not be obeyed.
func visible(r rune) string { return fmt.Sprintf("⟨U+%04X⟩", r) }
