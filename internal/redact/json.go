package redact

import (
	"bytes"
	"encoding/json"
)

// JSON masks the secrets in the strings of a JSON text after applying replace, which may be nil. It returns body
// itself if nothing changes. It masks invalid JSON as plain text.
func JSON(body []byte, replace func(string) string) []byte {
	if replace == nil && !hides(body) {
		return Mask(body)
	}
	var out []byte
	done, changed := 0, false
	for i := 0; i < len(body); i++ {
		if body[i] != '"' {
			continue
		}
		end := literal(body, i)
		if text, differs := plainLiteral(body[i:end], replace); text != nil {
			out = append(append(out, body[done:i]...), text...)
			done, changed = end, changed || differs
		}
		i = end - 1
	}
	if done == 0 {
		return Mask(body)
	}
	out = append(out, body[done:]...)
	if masked := Mask(out); changed || !bytes.Equal(masked, out) {
		return masked
	}
	return body
}

// hides reports whether escapes may hide characters of secrets.
func hides(text []byte) bool {
	return bytes.Contains(text, []byte(`\u00`)) || bytes.Contains(text, []byte(`\/`))
}

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

// plainLiteral masks a string and removes its escapes. It returns nil if the string is unchanged. differs reports
// whether its value changes.
func plainLiteral(text []byte, replace func(string) string) (plain []byte, differs bool) {
	hidden := hides(text)
	if replace == nil && !hidden {
		return nil, false
	}
	var s string
	if json.Unmarshal(text, &s) != nil {
		return nil, false
	}
	now := s
	if replace != nil {
		now = replace(now)
	}
	if now = string(Mask([]byte(now))); now == s && !hidden {
		return nil, false
	}
	plain, err := json.Marshal(now)
	if err != nil {
		return nil, false
	}
	return plain, now != s
}
