package strict

import (
	"bytes"
	"math/bits"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Valid reports whether text is one JSON value (RFC 8259) in UTF-8 whose arrays and objects are nested in at most
// most levels.
func Valid(text []byte, most int) bool {
	end := validValue(text, SkipSpace(text, 0), most)
	return end >= 0 && SkipSpace(text, end) == len(text)
}

// validValue returns the index after the value at i, or -1 if it is invalid.
func validValue(text []byte, i, most int) int {
	if i == len(text) {
		return -1
	}
	switch c := text[i]; c {
	case '"':
		return validString(text, i)
	case '{', '[':
		return validContainer(text, i, most)
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return validNumber(text, i)
	}
	for _, word := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(text[i:], []byte(word)) {
			return i + len(word)
		}
	}
	return -1
}

func validContainer(text []byte, i, most int) int {
	if most == 0 {
		return -1
	}
	object, end := text[i] == '{', text[i]+2 // ']' or '}'
	if i = SkipSpace(text, i+1); i < len(text) && text[i] == end {
		return i + 1
	}
	for {
		if object {
			if i = validName(text, i); i < 0 {
				return -1
			}
		}
		if i = validValue(text, i, most-1); i < 0 {
			return -1
		}
		switch i = SkipSpace(text, i); {
		case i == len(text):
			return -1
		case text[i] == end:
			return i + 1
		case text[i] != ',':
			return -1
		}
		i = SkipSpace(text, i+1)
	}
}

func validName(text []byte, i int) int {
	if i == len(text) || text[i] != '"' {
		return -1
	}
	if i = validString(text, i); i < 0 {
		return -1
	}
	if i = SkipSpace(text, i); i == len(text) || text[i] != ':' {
		return -1
	}
	return SkipSpace(text, i+1)
}

func validString(text []byte, i int) int {
	for i++; i < len(text); {
		if i += Plain(text[i:]); i == len(text) {
			return -1
		}
		switch c := text[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			n := escapeLength(text[i:])
			if n == 0 {
				return -1
			}
			i += n
		case c < ' ':
			return -1
		case c < utf8.RuneSelf:
			i++
		default:
			r, n := utf8.DecodeRune(text[i:])
			if r == utf8.RuneError && n == 1 {
				return -1
			}
			i += n
		}
	}
	return -1
}

// A backslash and escapes[i] stand for meaning[i].
const (
	escapes = `"\/bfnrt`
	meaning = "\"\\/\b\f\n\r\t"
)

// escapeLength returns the length of the escape at the start of text, or 0 if it is invalid.
func escapeLength(text []byte) int {
	if _, ok := unit(text); ok {
		return 6
	}
	if len(text) > 1 && strings.IndexByte(escapes, text[1]) >= 0 {
		return 2
	}
	return 0
}

func validNumber(text []byte, i int) int {
	at := func(any string) bool { return i < len(text) && strings.IndexByte(any, text[i]) >= 0 }
	digits := func() bool {
		start := i
		for i < len(text) && text[i] >= '0' && text[i] <= '9' {
			i++
		}
		return i > start
	}
	if text[i] == '-' {
		i++
	}
	if at("0") {
		i++
	} else if !digits() {
		return -1
	}
	if at(".") {
		if i++; !digits() {
			return -1
		}
	}
	if at("eE") {
		if i++; at("+-") {
			i++
		}
		if !digits() {
			return -1
		}
	}
	return i
}

// Plain returns the length of a prefix of printable ASCII without quotes and backslashes: a multiple of eight bytes,
// or everything before the first exception.
func Plain[T []byte | string](s T) int {
	const each, high = 0x0101010101010101, 0x8080808080808080
	rest := s
	for len(rest) >= 8 { // the compiler makes one load of these eight
		w := uint64(rest[0]) | uint64(rest[1])<<8 | uint64(rest[2])<<16 | uint64(rest[3])<<24 |
			uint64(rest[4])<<32 | uint64(rest[5])<<40 | uint64(rest[6])<<48 | uint64(rest[7])<<56
		quote, slash := w^each*'"', w^each*'\\'
		// The high bit of a byte is set if it is non-ASCII, below space, a quote or a backslash.
		if found := (w | (w - each*' ') | (quote - each) | (slash - each)) & high; found != 0 {
			return len(s) - len(rest) + bits.TrailingZeros64(found)/8
		}
		rest = rest[8:]
	}
	return len(s) - len(rest)
}

// Text returns the content of a valid JSON string. Half of a surrogate pair becomes U+FFFD.
func Text(quoted []byte) string {
	rest := quoted[1 : len(quoted)-1]
	i := bytes.IndexByte(rest, '\\')
	if i < 0 {
		return string(rest)
	}
	var b strings.Builder
	b.Grow(len(rest))
	for ; i >= 0; i = bytes.IndexByte(rest, '\\') {
		b.Write(rest[:i])
		rest = rest[i:]
		u, ok := unit(rest)
		if !ok {
			b.WriteByte(meaning[strings.IndexByte(escapes, rest[1])])
			rest = rest[2:]
			continue
		}
		r := rune(u)
		rest = rest[6:]
		if utf16.IsSurrogate(r) {
			low, _ := unit(rest)
			if r = utf16.DecodeRune(r, rune(low)); r != utf8.RuneError {
				rest = rest[6:]
			}
		}
		b.WriteRune(r)
	}
	b.Write(rest)
	return b.String()
}

// Compact appends valid JSON to dst without white space between tokens.
func Compact(dst, text []byte) []byte {
	for i := 0; i < len(text); {
		end := i + 1
		switch text[i] {
		case ' ', '\t', '\r', '\n':
			i++
			continue
		case '"':
			end = SkipString(text, i)
		}
		dst = append(dst, text[i:end]...)
		i = end
	}
	return dst
}
