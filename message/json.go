package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
	switch {
	case strict.Valid(frame, maxDepth):
		return nil
	case !utf8.Valid(frame):
		return errors.New("the frame is not valid UTF-8")
	case strict.TooDeep(frame, maxDepth):
		return fmt.Errorf("the frame is nested deeper than %d levels", maxDepth)
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

func (o object) duplicates() (names []string) {
	for i, m := range o {
		if slices.ContainsFunc(o[:i], func(e strict.Member) bool { return e.Name == m.Name }) {
			names = append(names, m.Name)
		}
	}
	return names
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
	return strict.Text(raw), nil
}

// sameJSON compares two arguments, ignoring white space between tokens.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	return validArguments(a) && validArguments(b) && bytes.Equal(strict.Compact(nil, a), strict.Compact(nil, b))
}

// validArguments reports whether arguments are JSON. Those of a string are not part of the frame's check.
func validArguments(text []byte) bool { return strict.Valid(text, maxDepth) }
