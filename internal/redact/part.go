package redact

import (
	"bytes"
	"strings"
)

// Reach is how many bytes around a part Part searches for secrets: the distance from the name of a private key to its
// end.
const Reach = 16 << 10

// Part returns a copy of p[from:to]. If the cut would hide a secret from Mask, it masks all secrets in the copy.
func Part(p []byte, from, to int) []byte {
	part := p[from:to]
	begin := max(0, from-Reach)
	masked := Mask(p[begin:min(len(p), to+Reach)])[from-begin : to-begin]
	if bytes.Equal(Mask(part), masked) {
		return bytes.Clone(part)
	}
	return bytes.Clone(masked)
}

// Short returns a text or, if it has more than most bytes, its Beginning and "…".
func Short(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return Beginning(text, most) + "…"
}

// Beginning returns Part of at most the first most bytes, cut between characters.
func Beginning(text string, most int) string {
	text = text[:min(len(text), most+Reach)]
	return strings.ToValidUTF8(string(Part([]byte(text), 0, min(len(text), most))), "")
}
