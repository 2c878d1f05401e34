package programs

import (
	"bytes"
	"encoding/base64"
	"strings"
)

// decoded returns the text of which a word is the base64 form, if it has several words.
func decoded(word string) string {
	if len(word) < len("Z2l0IHB1c2g") {
		return ""
	}
	text, err := base64.RawStdEncoding.DecodeString(urlLetters.Replace(word))
	unprintable := bytes.ContainsFunc(text, func(r rune) bool { return r > '~' || r < '\t' })
	if err != nil || unprintable || !bytes.ContainsAny(text, between) {
		return ""
	}
	return string(text)
}

// Decoded returns the texts of which words of a text are the base64 form.
func Decoded(text string) string {
	var out []string
	for word := range strings.FieldsSeq(text) {
		if d := decoded(strings.TrimRight(word, "=")); d != "" {
			out = append(out, d)
		}
	}
	return strings.Join(out, "\n")
}

var urlLetters = strings.NewReplacer("-", "+", "_", "/")
