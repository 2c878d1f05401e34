package display

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/toold/toold/internal/lazyregexp"
)

var bare = lazyregexp.New(`^[A-Za-z0-9_./:,@%+-]+$`)

// Operand quotes s for a shell, as the last word of a command that is shown to be copied. What a person cannot see is
// written in codes, so that the command is the one that is shown.
func Operand(s string) string {
	text := s
	switch {
	case strings.ContainsFunc(s, IsUnseen) || !utf8.ValidString(s):
		text = "$'" + codes(s) + "'"
	case !bare().MatchString(s):
		text = "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	if strings.HasPrefix(s, "-") {
		return "-- " + text
	}
	return text
}

func codes(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '\'' || r == '\\':
			fmt.Fprintf(&b, `\%c`, r)
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd"):
			fmt.Fprintf(&b, `\%03o`, s[i])
		case IsUnseen(r):
			for _, c := range []byte(string(r)) {
				fmt.Fprintf(&b, `\%03o`, c) // unlike \x, it ends after three digits in every shell
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
