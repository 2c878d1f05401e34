package redact

import (
	"bytes"
	"strings"
)

// Reach is how far around a part Part looks for secrets: as far as a private key follows the line
// that names it.
const Reach = 16 << 10

// Part returns a copy of p[from:to]. Where cutting it out hides a secret from Mask, since the cut
// goes through it or what names it is not in the part, all secrets of the part are masked.
func Part(p []byte, from, to int) []byte {
	part := p[from:to]
	begin := max(0, from-Reach)
	masked := Mask(p[begin:min(len(p), to+Reach)])[from-begin : to-begin]
	if bytes.Equal(Mask(part), masked) {
		return bytes.Clone(part)
	}
	return bytes.Clone(masked)
}

// Beginning returns at most so many first bytes of a text as Part does, cut between characters.
func Beginning(text string, most int) string {
	text = text[:min(len(text), most+Reach)]
	return strings.ToValidUTF8(string(Part([]byte(text), 0, min(len(text), most))), "")
}
