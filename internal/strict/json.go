// Package strict splits JSON into its exact bytes, including duplicates. It requires valid JSON, except for TooDeep,
// Valid and the Skip functions. Results alias the text. It takes linear time and memory.
package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// TooDeep reports whether values are nested in more than most levels. The text need not be valid, so that TooDeep can
// run before a recursive parser.
func TooDeep(text []byte, most int) bool {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = SkipString(text, i) - 1
		case '[', '{':
			if depth++; depth > most {
				return true
			}
		case ']', '}':
			depth--
		}
	}
	return false
}

// SkipString returns the index after the string that starts at i.
func SkipString(text []byte, i int) int {
	for i++; i < len(text); i++ {
		if i += Plain(text[i:]); i == len(text) {
			break
		}
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// SkipValue returns the index after the value that starts at i.
func SkipValue(text []byte, i int) int {
	depth := 0
	for i < len(text) {
		switch text[i] {
		case '"':
			i = SkipString(text, i)
		case '[', '{':
			depth++
			i++
		case ']', '}':
			depth--
			i++
		default:
			i = skipScalar(text, i)
		}
		if depth == 0 {
			return i
		}
	}
	return i
}

// skipScalar returns the index after a number, a word, or one byte of punctuation.
func skipScalar(text []byte, i int) int {
	for start := i; i < len(text); i++ {
		switch text[i] {
		case ',', ':', ']', '}', ' ', '\t', '\r', '\n', '"':
			return max(i, start+1)
		}
	}
	return i
}

// SkipSpace returns the index of the first byte from i on that is not white space.
func SkipSpace(text []byte, i int) int {
	for ; i < len(text); i++ {
		switch text[i] {
		case ' ', '\t', '\r', '\n':
		default:
			return i
		}
	}
	return i
}

// Member is one member of an object.
type Member struct {
	Name   string
	Quoted json.RawMessage // name as written
	Value  json.RawMessage
}

var (
	errNotObject = errors.New("must be an object")
	errNotArray  = errors.New("must be an array")
)

// Object returns up to most members of an object, in order.
func Object(text json.RawMessage, most int) ([]Member, error) {
	i := SkipSpace(text, 0)
	if i == len(text) || text[i] != '{' {
		return nil, errNotObject
	}
	var members []Member
	for i = SkipSpace(text, i+1); text[i] != '}'; i = SkipSpace(text, i) {
		if text[i] == ',' {
			i = SkipSpace(text, i+1)
		}
		if len(members) == most {
			return nil, fmt.Errorf("has more than %d members", most)
		}
		m := Member{Quoted: text[i:SkipString(text, i)]}
		m.Name = Text(m.Quoted)
		i = SkipSpace(text, SkipSpace(text, i+len(m.Quoted))+1) // after the colon
		m.Value = text[i:SkipValue(text, i)]
		members = append(members, m)
		i += len(m.Value)
	}
	return members, nil
}

// Array returns up to most elements of an array.
func Array(text json.RawMessage, most int) ([]json.RawMessage, error) {
	i := SkipSpace(text, 0)
	if i == len(text) || text[i] != '[' {
		return nil, errNotArray
	}
	var elements []json.RawMessage
	for i = SkipSpace(text, i+1); text[i] != ']'; i = SkipSpace(text, i) {
		if text[i] == ',' {
			i = SkipSpace(text, i+1)
		}
		if len(elements) == most {
			return nil, fmt.Errorf("has more than %d elements", most)
		}
		end := SkipValue(text, i)
		elements = append(elements, text[i:end])
		i = end
	}
	return elements, nil
}

// Ambiguous returns the first escape that readers interpret differently: half of a surrogate pair or, with nul,
// \u0000, which ends a string for the kernel. It returns "" if there is none.
func Ambiguous(text []byte, nul bool) string {
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 || i+1 >= len(text) {
			return ""
		}
		text = text[i:]
		u, ok := unit(text)
		if !ok {
			text = text[2:]
			continue
		}
		if low, ok := unit(text[6:]); utf16.IsSurrogate(rune(u)) {
			if !ok || utf16.DecodeRune(rune(u), rune(low)) == utf8.RuneError {
				return string(text[:6])
			}
			text = text[6:]
		} else if u == 0 && nul {
			return string(text[:6])
		}
		text = text[6:]
	}
}

func unit(text []byte) (unit uint64, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return unit, err == nil
}
