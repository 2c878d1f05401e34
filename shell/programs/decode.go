package programs

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// decoded returns the text that a word encodes in base64 or hexadecimal, or "" if the text is one word or unprintable.
func decoded(word string) string {
	if len(word) < len("Z2l0IHB1c2g") {
		return ""
	}
	text, err := hex.DecodeString(word)
	if err != nil {
		text, err = base64.RawStdEncoding.DecodeString(urlLetters.Replace(word))
	}
	unprintable := bytes.ContainsFunc(text, func(r rune) bool { return r > '~' || r < '\t' })
	if err != nil || unprintable || !bytes.ContainsAny(text, between) {
		return ""
	}
	return string(text)
}

// Decoded returns the texts that words of a text encode in base64 or hexadecimal.
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
