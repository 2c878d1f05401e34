package tools

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds the nesting of arguments. The four tools need one level;
// ignored arguments may hold anything of reasonable shape.
const maxDepth = 64

// member is one name and value of an object, the value as it was written.
type member struct {
	name  string
	value json.RawMessage
}

// kind names the value's JSON type for people. The value is valid JSON.
func (m member) kind() string {
	switch m.value[0] {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}

func (m member) text() (string, bool) {
	var s string
	if m.value[0] != '"' || json.Unmarshal(m.value, &s) != nil {
		return "", false
	}
	return s, true
}

// readObject splits the text of one JSON object into its members, in order.
// What two readers could understand differently is an *ArgumentError.
func readObject(text json.RawMessage) ([]member, error) {
	text = bytes.Trim(text, " \t\r\n")
	if err := checkText(text); err != nil {
		return nil, err
	}
	if text[0] != '{' {
		return nil, &ArgumentError{Problem: "expected a JSON object, got " + member{value: text}.kind()}
	}
	members, err := splitObject(text)
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool, len(members))
	for _, m := range members {
		if seen[m.name] {
			return nil, &ArgumentError{Field: shorten(m.name), Problem: "given more than once; send it once"}
		}
		seen[m.name] = true
		if err := checkStrings(m.value); err != nil {
			return nil, &ArgumentError{Field: shorten(m.name), Problem: err.Error()}
		}
	}
	return members, nil
}

// checkText verifies that text is one JSON value in valid UTF-8, not nested too
// deep.
func checkText(text json.RawMessage) error {
	switch {
	case len(text) == 0:
		return &ArgumentError{Problem: `empty text; expected a JSON object such as {"name": "value"}`}
	case !utf8.Valid(text):
		return &ArgumentError{Problem: "not valid UTF-8"}
	case tooDeep(text):
		return &ArgumentError{Problem: fmt.Sprintf("nested deeper than %d levels", maxDepth)}
	}
	if json.Valid(text) {
		return nil
	}
	var value json.RawMessage
	err := json.Unmarshal(text, &value) // says why
	problem := fmt.Sprintf("not valid JSON: %v", err)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		problem += fmt.Sprintf(" (byte %d)", syntax.Offset)
	}
	return &ArgumentError{Problem: problem}
}

// tooDeep counts brackets outside of strings. It needs no valid JSON, so that
// it can run before any parser sees the text.
func tooDeep(text []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// splitObject splits the valid text of an object. Names are compared after
// their escapes are resolved, so "a" and "\u0061" are the same.
func splitObject(text json.RawMessage) ([]member, error) {
	var members []member
	next := func(between string) json.RawMessage {
		text = bytes.TrimLeft(text, between)
		value := text[:valueLength(text)]
		text = text[len(value):]
		return value
	}
	for text = text[1:]; ; {
		name := next(" \t\r\n,")
		if len(name) == 0 {
			return members, nil // at the closing brace
		}
		decoded, _ := member{value: name}.text()
		if err := checkStrings(name); err != nil {
			return nil, &ArgumentError{Field: shorten(decoded), Problem: err.Error() + " in the argument's name"}
		}
		members = append(members, member{decoded, next(" \t\r\n:")})
	}
}

// splitArray splits the valid text of an array.
func splitArray(text json.RawMessage) (values []json.RawMessage) {
	for text = text[1:]; ; {
		text = bytes.TrimLeft(text, " \t\r\n,")
		n := valueLength(text)
		if n == 0 {
			return values // at the closing bracket
		}
		values = append(values, text[:n])
		text = text[n:]
	}
}

// valueLength measures the value at the start of valid JSON text; 0 when there
// is none before the object or array ends.
func valueLength(text []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			if quoted = !quoted; !quoted && depth == 0 {
				return i + 1
			}
		case quoted:
		case c == '{' || c == '[':
			depth++
		case depth > 0 && (c == '}' || c == ']'):
			if depth--; depth == 0 {
				return i + 1
			}
		case depth == 0 && bytes.IndexByte([]byte(",}] \t\r\n"), c) >= 0:
			return i // after a number or a word
		}
	}
	return len(text)
}

// checkStrings refuses the escapes in valid JSON text whose meaning depends on
// the reader: NUL, which ends a string for the kernel, and half of a surrogate
// pair, which readers replace in different ways.
func checkStrings(text []byte) error {
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 {
			return nil
		}
		text = text[i:]
		unit, ok := escape(text)
		switch {
		case !ok:
			text = text[2:]
			continue
		case unit == 0:
			return errors.New(`holds a NUL character (\u0000)`)
		case unit >= 0xd800 && unit < 0xdc00:
			if low, ok := escape(text[6:]); !ok || low < 0xdc00 || low > 0xdfff {
				return fmt.Errorf(`holds half of a surrogate pair (\u%04x)`, unit)
			}
			text = text[6:]
		case unit >= 0xdc00 && unit < 0xe000:
			return fmt.Errorf(`holds half of a surrogate pair (\u%04x)`, unit)
		}
		text = text[6:]
	}
}

// escape reads a \uXXXX at the start of text.
func escape(text []byte) (unit uint64, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return unit, err == nil
}

// CanonicalHash identifies a call by what it asks: the hex SHA-256 of the
// tool's canonical name and its arguments. White space, the order of keys and
// the way characters are escaped make no difference; numbers count as they are
// written. Arguments that Decode would refuse as a text (broken JSON, repeated
// keys at the top level, broken escapes) count byte for byte.
func CanonicalHash(tool string, args json.RawMessage) string {
	h := sha256.New()
	io.WriteString(h, tool+"\x00")
	if _, err := readObject(args); err != nil {
		h.Write(args)
		return hex.EncodeToString(h.Sum(nil))
	}
	decoder := json.NewDecoder(bytes.NewReader(args))
	writeCanonical(h, decoder)
	return hex.EncodeToString(h.Sum(nil))
}

// writeCanonical writes the next value of valid JSON. Its depth is bounded by
// maxDepth.
func writeCanonical(w io.Writer, d *json.Decoder) {
	d.UseNumber()
	token, _ := d.Token()
	switch t := token.(type) {
	case json.Delim:
		writeContainer(w, d, t)
	case json.Number:
		io.WriteString(w, t.String())
	case string:
		io.WriteString(w, strconv.Itoa(len(t))+"\"")
		io.WriteString(w, t)
	case bool:
		io.WriteString(w, strconv.FormatBool(t))
	default:
		io.WriteString(w, "null")
	}
}

func writeContainer(w io.Writer, d *json.Decoder, open json.Delim) {
	type part struct{ key, value string }
	var parts []part
	for d.More() {
		var key, value strings.Builder
		if open == '{' {
			writeCanonical(&key, d)
		}
		writeCanonical(&value, d)
		parts = append(parts, part{key.String(), value.String()})
	}
	closing, _ := d.Token()
	if open == '{' {
		// Stable, so that keys repeated deep inside keep their order: which of
		// them counts depends on the reader.
		slices.SortStableFunc(parts, func(a, b part) int { return strings.Compare(a.key, b.key) })
	}
	io.WriteString(w, open.String())
	for _, p := range parts {
		io.WriteString(w, p.key+":"+p.value+",")
	}
	fmt.Fprint(w, closing)
}
