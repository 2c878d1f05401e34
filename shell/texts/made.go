package texts

import (
	"strings"

	"github.com/toold/toold/internal/lazyregexp"
)

const (
	FreshDir = "/tmp/"          // where mktemp makes files
	MadeName = "tmp.XXXXXXXXXX" // as mktemp makes one
	maxMade  = 3
)

const made = FreshDir + `tmp\.X{10}`

// removals matches the removal of what mktemp makes, which is nothing if that has no name.
var removals = lazyregexp.New(`(^|[;&|] ?)rm(?: -[rRfv]+| --)*(?: (?:` + made + `|"` + made + `"|'` + made + `'))+ *(?:$|([;&|]))`)

// Made returns what a text with names that mktemp makes may be if each mktemp may also fail, and so print nothing. It
// returns nil if text is "" or has too many such names.
func Made(text string) []string {
	parts := strings.Split(removals().ReplaceAllString(text, "${1}true${2}"), FreshDir+MadeName)
	if text == "" || len(parts) > maxMade+1 {
		return nil
	}
	list := []string{parts[0]}
	for _, part := range parts[1:] {
		var next []string
		for _, before := range list {
			next = append(next, before+FreshDir+MadeName+part, before+part)
		}
		list = next
	}
	return append(list, text)
}
