package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/toold/toold/internal/strict"
)

// Bounds of a frame's envelope, against small frames that need much memory.
const (
	maxDepth    = 512
	maxMembers  = 256  // per object
	maxElements = 1024 // per array
)

// checkFrame verifies that frame is one JSON value, as this file's other functions require.
func checkFrame(frame []byte) error {
	if !utf8.Valid(frame) {
		return errors.New("the frame is not valid UTF-8")
	}
	if strict.TooDeep(frame, maxDepth) {
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

type object []strict.Member

// get returns the first member of exactly this name. Null is absent.
func (o object) get(key string) (json.RawMessage, bool) {
	for _, m := range o {
		if m.Name == key {
			return m.Value, string(m.Value) != "null"
		}
	}
	return nil, false
}

func (o object) duplicates() []string {
	var keys []string
	seen := make(map[string]bool, len(o))
	for _, m := range o {
		if seen[m.Name] {
			keys = append(keys, m.Name)
		}
		seen[m.Name] = true
	}
	return keys
}

func splitObject(raw json.RawMessage) (object, error) { return strict.Object(raw, maxMembers) }

func splitArray(raw json.RawMessage) ([]json.RawMessage, error) {
	return strict.Array(raw, maxElements)
}

// unquote returns a JSON string's content. It refuses half a surrogate pair, which encoding/json
// replaces and other readers do not.
func unquote(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", errors.New("must be a string")
	}
	if strict.Ambiguous(raw, false) != "" {
		return "", errors.New("contains half of a surrogate pair")
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", errors.New("must be a string")
	}
	return s, nil
}

// sameJSON compares two arguments, ignoring white space between tokens.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}
