package programs

import (
	"strings"

	"github.com/toold/toold/internal/lazyregexp"
)

func (c *Command) sed(words []Word) {
	s := sedReader{safe: true}
	for i := 0; i < len(words); i++ {
		i += s.word(words, i)
	}
	if !s.script && len(s.files) > 0 {
		s.safe = s.safe && safeSedScript(s.files[0])
		if !s.files[0].Many {
			s.files = s.files[1:]
		}
	}
	c.Known, c.Code = true, !s.safe
	for _, w := range s.files {
		c.Operands = append(c.Operands, Operand{Word: w, Kind: Read})
		if s.inPlace {
			c.Operands = append(c.Operands, Operand{Word: w, Kind: Write}, Operand{Word: Word{Text: w.Text + s.suffix, Dynamic: w.Dynamic}, Kind: Write})
		}
	}
	switch {
	case s.safe && s.inPlace:
		c.Covers = CoversWrite
	case s.safe:
		c.Covers = CoversRead
	}
}

type sedReader struct {
	files   []Word
	safe    bool
	script  bool
	inPlace bool
	suffix  string
}

// word returns the number of values that follow words[i].
func (s *sedReader) word(words []Word, i int) int {
	w := words[i]
	switch {
	case w.mayBeFlags():
		s.safe = false
		s.files = append(s.files, w)
	case w.Text == "--":
		s.files = append(s.files, words[i+1:]...)
		return len(words)
	case len(w.Text) < 2 || w.Text[0] != '-':
		s.files = append(s.files, w)
	default:
		return s.flag(words, i)
	}
	return 0
}

func (s *sedReader) flag(words []Word, i int) int {
	text := words[i].Text
	if script, ok := strings.CutPrefix(text, "--expression="); ok {
		s.addScript(Word{Text: script})
		return 0
	}
	if suffix, ok := strings.CutPrefix(text, "--in-place"); ok || strings.HasPrefix(text, "-i") {
		if !ok {
			suffix = text[2:]
		}
		s.inPlace, s.suffix = true, strings.TrimPrefix(suffix, "=")
		s.safe = s.safe && !strings.ContainsAny(suffix, "/*")
		return 0
	}
	short := text[1] != '-'
	if text == "--expression" || short && strings.HasSuffix(text, "e") {
		s.safe = s.safe && (text == "--expression" || sedFlags().MatchString(text))
		if i+1 < len(words) {
			s.addScript(words[i+1])
		}
		return 1
	}
	s.safe = s.safe && sedFlags().MatchString(text)
	s.inPlace = s.inPlace || short && strings.Contains(text, "i")
	return 0
}

func (s *sedReader) addScript(w Word) {
	s.script = true
	if w.Many {
		s.files = append(s.files, Word{Dynamic: true})
	}
	s.safe = s.safe && safeSedScript(w)
}

// sedFlags match flags that neither run nor write anything.
var sedFlags = lazyregexp.New(`^(?:-[nrEsuz]*e?|--(?:quiet|silent|regexp-extended|separate|unbuffered|null-data|posix|debug))$`)

// safeSedScript reports whether a script runs no program and names no file.
func safeSedScript(w Word) bool {
	if w.Dynamic {
		return false
	}
	s := w.Text
	for {
		s = strings.TrimLeft(s, " \t\n;{}")
		if s == "" {
			return true
		}
		var ok bool
		if s, ok = sedAddress(s); !ok || s == "" {
			return false
		}
		if s, ok = sedCommand(s); !ok {
			return false
		}
	}
}

func sedAddress(s string) (rest string, ok bool) {
	for s != "" {
		switch c := s[0]; {
		case c >= '0' && c <= '9' || strings.IndexByte("$,~+! \t", c) >= 0:
			s = s[1:]
		case c == '/':
			_, rest, ok := sedDelimited(s[1:], '/')
			if !ok {
				return "", false
			}
			s = strings.TrimLeft(rest, "IM")
		default:
			return s, true
		}
	}
	return "", true
}

// sedDelimited cuts at an unescaped delimiter. Line breaks are ambiguous.
func sedDelimited(s string, delimiter byte) (text, rest string, ok bool) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '\n', '[':
			// A delimiter in brackets is ambiguous.
			if s[i] == '\n' {
				return "", "", false
			}
			end := sedBracket(s[i+1:])
			if end < 0 || strings.IndexByte(s[i+1:i+1+end], delimiter) >= 0 {
				return "", "", false
			}
		case delimiter:
			return s[:i], s[i+1:], true
		}
	}
	return "", "", false
}

// sedBracket returns the end of a bracket expression that begins before s, or -1. A leading ] is a member, and
// classes have their own delimiter.
func sedBracket(s string) int {
	i := 0
	if strings.HasPrefix(s, "^") {
		i++
	}
	if strings.HasPrefix(s[i:], "]") {
		i++
	}
	for ; i < len(s); i++ {
		switch {
		case s[i] == ']':
			return i
		case s[i] == '[' && i+1 < len(s) && strings.IndexByte(":=.", s[i+1]) >= 0:
			end := strings.Index(s[i+2:], s[i+1:i+2]+"]")
			if end < 0 {
				return -1
			}
			i += end + 3
		}
	}
	return -1
}

func sedCommand(s string) (rest string, ok bool) {
	c := s[0]
	switch {
	case strings.IndexByte("pdDPqQlnNgGhHx=}", c) >= 0:
		return sedEnd(strings.TrimLeft(s[1:], "0123456789"))
	case c == '{':
		return s[1:], true
	case c == 's' || c == 'y':
		return sedSubstitute(s[1:], c == 's')
	}
	return "", false
}

func sedSubstitute(s string, flags bool) (rest string, ok bool) {
	if s == "" || s[0] >= 0x80 || strings.IndexByte("\\\n[", s[0]) >= 0 {
		return "", false
	}
	delimiter := s[0]
	if _, s, ok = sedDelimited(s[1:], delimiter); !ok {
		return "", false
	}
	if _, s, ok = sedDelimited(s, delimiter); !ok {
		return "", false
	}
	if flags {
		s = strings.TrimLeft(s, "gpIi0123456789") // neither e nor w
	}
	return sedEnd(s)
}

func sedEnd(s string) (rest string, ok bool) {
	s = strings.TrimLeft(s, " \t")
	if s == "" || strings.IndexByte(";\n}", s[0]) >= 0 {
		return s, true
	}
	return "", false
}
