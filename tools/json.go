package tools

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toold/toold/internal/strict"
)

const maxDepth = 64

type member struct {
	name  string
	value json.RawMessage
}

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

// readObject splits an object into its members. Text that two readers could understand differently
// is an *ArgumentError.
func readObject(text json.RawMessage) ([]member, error) {
	text = bytes.Trim(text, " \t\r\n")
	if err := checkText(text); err != nil {
		return nil, err
	}
	if text[0] != '{' {
		return nil, &ArgumentError{Problem: "expected a JSON object, got " + member{value: text}.kind()}
	}
	split, err := strict.Object(text, math.MaxInt)
	if err != nil {
		return nil, &ArgumentError{Problem: err.Error()}
	}
	var members []member
	seen := make(map[string]bool, len(split))
	for _, m := range split {
		if err := checkStrings(m.Quoted); err != nil {
			return nil, &ArgumentError{Field: shorten(m.Name), Problem: err.Error() + " in the argument's name"}
		}
		if seen[m.Name] {
			return nil, &ArgumentError{Field: shorten(m.Name), Problem: "given more than once; send it once"}
		}
		seen[m.Name] = true
		if err := checkStrings(m.Value); err != nil {
			return nil, &ArgumentError{Field: shorten(m.Name), Problem: err.Error()}
		}
		members = append(members, member{m.Name, m.Value})
	}
	return members, nil
}

func checkText(text json.RawMessage) error {
	switch {
	case len(text) == 0:
		return &ArgumentError{Problem: `empty text; expected a JSON object such as {"name": "value"}`}
	case !utf8.Valid(text):
		return &ArgumentError{Problem: "not valid UTF-8"}
	case strict.TooDeep(text, maxDepth):
		return &ArgumentError{Problem: fmt.Sprintf("nested deeper than %d levels", maxDepth)}
	}
	if json.Valid(text) {
		return nil
	}
	var value json.RawMessage
	err := json.Unmarshal(text, &value)
	problem := fmt.Sprintf("not valid JSON: %v", err)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		problem += fmt.Sprintf(" (byte %d)", syntax.Offset)
	}
	return &ArgumentError{Problem: problem}
}

// checkStrings refuses escapes that readers understand differently.
func checkStrings(text []byte) error {
	switch odd := strict.Ambiguous(text, true); odd {
	case "":
		return nil
	case `\u0000`:
		return errors.New(`contains a NUL character (\u0000)`)
	default:
		return fmt.Errorf("contains half of a surrogate pair (%s)", strings.ToLower(odd))
	}
}

// CanonicalHash returns the hex SHA-256 of the tool's canonical name and the arguments, regardless
// of white space, order of keys and escapes. What Decode refuses counts byte for byte.
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

// writeCanonical writes the next value of valid JSON.
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
		// Stable: which of nested duplicates counts depends on the reader.
		slices.SortStableFunc(parts, func(a, b part) int { return strings.Compare(a.key, b.key) })
	}
	io.WriteString(w, open.String())
	for _, p := range parts {
		io.WriteString(w, p.key+":"+p.value+",")
	}
	fmt.Fprint(w, closing)
}
