package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// Bounds of a frame, so that a small frame cannot become a large structure in
// memory. Arguments of calls are not split and have no such bounds.
const (
	maxDepth    = 512  // arrays and objects inside each other
	maxMembers  = 256  // of one object of the envelope
	maxElements = 1024 // of one array of the envelope
)

// checkFrame returns an error unless frame is one valid JSON value. The other
// functions of this file require a valid frame.
func checkFrame(frame []byte) error {
	if !utf8.Valid(frame) {
		return errors.New("the frame is not valid UTF-8")
	}
	if tooDeep(frame) {
		return fmt.Errorf("the frame is nested deeper than %d levels", maxDepth)
	}
	if json.Valid(frame) {
		return nil
	}
	var syntax *json.SyntaxError
	if err := json.Unmarshal(frame, &struct{}{}); errors.As(err, &syntax) {
		return fmt.Errorf("the frame is not valid JSON: %v at byte %d", syntax, syntax.Offset)
	}
	return errors.New("the frame is not valid JSON")
}

// tooDeep runs before any parser, which may recurse.
func tooDeep(b []byte) bool {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = skipString(b, i) - 1
		case '[', '{':
			if depth++; depth > maxDepth {
				return true
			}
		case ']', '}':
			depth--
		}
	}
	return false
}

// skipString returns the index behind the string that starts at i.
func skipString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// skipValue returns the index behind the value that starts at i.
func skipValue(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = skipString(b, i)
		case '[', '{':
			depth++
			i++
		case ']', '}':
			depth--
			i++
		default:
			i = skipScalar(b, i)
		}
		if depth == 0 {
			return i
		}
	}
	return i
}

// skipScalar returns the index behind a number or word, or behind one byte of
// punctuation.
func skipScalar(b []byte, i int) int {
	for start := i; i < len(b); i++ {
		switch b[i] {
		case ',', ':', ']', '}', ' ', '\t', '\r', '\n', '"':
			return max(i, start+1)
		}
	}
	return i
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// object contains the members of a JSON object in order, with duplicates.
type object []member

type member struct {
	key   string
	value json.RawMessage // aliases the frame
}

// get returns the first member of this name, in this case. Null counts as absent.
func (o object) get(key string) (json.RawMessage, bool) {
	for _, m := range o {
		if m.key == key {
			return m.value, !isNull(m.value)
		}
	}
	return nil, false
}

// duplicates returns the keys that occur more than once.
func (o object) duplicates() []string {
	var keys []string
	seen := make(map[string]bool, len(o))
	for _, m := range o {
		if seen[m.key] {
			keys = append(keys, m.key)
		}
		seen[m.key] = true
	}
	return keys
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

var (
	errNotObject = errors.New("must be an object")
	errNotArray  = errors.New("must be an array")
)

// splitObject returns the members of an object of a valid frame.
func splitObject(raw json.RawMessage) (object, error) {
	i := skipSpace(raw, 0)
	if i == len(raw) || raw[i] != '{' {
		return nil, errNotObject
	}
	var o object
	for i = skipSpace(raw, i+1); raw[i] != '}'; i = skipSpace(raw, i) {
		if raw[i] == ',' {
			i = skipSpace(raw, i+1)
		}
		if len(o) == maxMembers {
			return nil, fmt.Errorf("has more than %d members", maxMembers)
		}
		end := skipString(raw, i)
		var key string
		if err := json.Unmarshal(raw[i:end], &key); err != nil {
			return nil, err
		}
		i = skipSpace(raw, skipSpace(raw, end)+1) // behind the colon
		end = skipValue(raw, i)
		o = append(o, member{key, raw[i:end]})
		i = end
	}
	return o, nil
}

// splitArray returns the elements of an array of a valid frame.
func splitArray(raw json.RawMessage) ([]json.RawMessage, error) {
	i := skipSpace(raw, 0)
	if i == len(raw) || raw[i] != '[' {
		return nil, errNotArray
	}
	var elements []json.RawMessage
	for i = skipSpace(raw, i+1); raw[i] != ']'; i = skipSpace(raw, i) {
		if raw[i] == ',' {
			i = skipSpace(raw, i+1)
		}
		if len(elements) == maxElements {
			return nil, fmt.Errorf("has more than %d elements", maxElements)
		}
		end := skipValue(raw, i)
		elements = append(elements, raw[i:end])
		i = end
	}
	return elements, nil
}

// unquote returns the content of a JSON string. Half a surrogate pair is an error:
// encoding/json replaces it by U+FFFD, other readers do not.
func unquote(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", errors.New("must be a string")
	}
	if hasLoneSurrogate(raw) {
		return "", errors.New("contains half of a surrogate pair")
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", errors.New("must be a string")
	}
	return s, nil
}

// hasLoneSurrogate reports whether a string of valid JSON escapes one half of
// a surrogate pair without the other.
func hasLoneSurrogate(raw []byte) bool {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 || i+1 >= len(raw) {
			return false
		}
		unit, ok := escapedUnit(raw[i:])
		if !ok {
			raw = raw[i+2:]
			continue
		}
		raw = raw[i+6:]
		if unit < 0xD800 || unit > 0xDFFF {
			continue
		}
		low, ok := escapedUnit(raw)
		if unit > 0xDBFF || !ok || low < 0xDC00 || low > 0xDFFF {
			return true
		}
		raw = raw[6:]
	}
}

// escapedUnit returns the UTF-16 unit of a \uXXXX at the start of b.
func escapedUnit(b []byte) (unit rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		unit = unit<<4 | rune(c)
	}
	return unit, true
}

// sameJSON reports whether two argument texts are the same value up to white
// space between tokens.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}
