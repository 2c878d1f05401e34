package redact

import (
	"bytes"
	"encoding/json"
)

// JSON returns a JSON text in whose strings the secrets are masked and replace was applied,
// which may be nil. The result is body itself, unchanged, when there is nothing to mask. A
// text that is no JSON is masked as it is.
func JSON(body []byte, replace func(string) string) []byte {
	if replace == nil && !bytes.Contains(body, []byte(`\u00`)) {
		return Mask(body)
	}
	var out []byte
	done := 0
	for i := 0; i < len(body); i++ {
		if body[i] != '"' {
			continue
		}
		end := literal(body, i)
		if changed := changedLiteral(body[i:end], replace); changed != nil {
			out = append(append(out, body[done:i]...), changed...)
			done = end
		}
		i = end - 1
	}
	if done == 0 {
		return Mask(body)
	}
	return Mask(append(out, body[done:]...))
}

// literal is the offset behind the string that begins at i.
func literal(body []byte, i int) int {
	for i++; i < len(body); i++ {
		switch body[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(body)
}

// changedLiteral is a string with what is to be masked in it; nil when there is nothing.
func changedLiteral(text []byte, replace func(string) string) []byte {
	if replace == nil && !bytes.Contains(text, []byte(`\u00`)) {
		return nil
	}
	var s string
	if json.Unmarshal(text, &s) != nil {
		return nil
	}
	now := s
	if replace != nil {
		now = replace(now)
	}
	now = string(Mask([]byte(now)))
	if now == s {
		return nil
	}
	changed, err := json.Marshal(now)
	if err != nil {
		return nil
	}
	return changed
}
