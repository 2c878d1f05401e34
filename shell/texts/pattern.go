package texts

import (
	"strings"

	"github.com/toold/toold/internal/lazyregexp"
)

var (
	brackets = lazyregexp.New(`\[[\]!^]?(?:\[[:.=][^\]]*\]|[^\]])*\]`)
	plainSet = lazyregexp.New(`^\[(?:[A-Za-z0-9_]|0-9)+\]$`)
)

// Widened returns a pattern of filepath.Match that matches at least what bash's does.
func Widened(pattern string) string {
	if !strings.Contains(pattern, "[") {
		return pattern
	}
	if strings.Contains(pattern, `\`) {
		return "*" // quoted brackets are not distinguished
	}
	return brackets().ReplaceAllStringFunc(pattern, func(set string) string {
		if plainSet().MatchString(set) {
			return set
		}
		return "?"
	})
}

// LiteralPrefix returns a pattern's text before its first special character.
func LiteralPrefix(pattern string) string {
	var out strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '*', '?', '[':
			return out.String()
		case '\\':
			i++
		}
		if i < len(pattern) {
			out.WriteByte(pattern[i])
		}
	}
	return out.String()
}

// Unescape removes the backslashes that bash removes, between double quotes if inQuotes is set.
func Unescape(s string, inQuotes bool) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		escapes := s[i] == '\\' && i+1 < len(s)
		if escapes && (!inQuotes || strings.IndexByte("$`\"\\\n", s[i+1]) >= 0) {
			if i++; s[i] == '\n' {
				continue
			}
		}
		out.WriteByte(s[i])
	}
	return out.String()
}

// Untrimmed returns how much of the beginning of a text is certainly left by the trimming operator op, if the rest of the
// text is not known.
func Untrimmed(op, begin, pattern string) string {
	switch {
	case op[0] == '#' || pattern == "" || strings.ContainsAny(pattern, `\[(`):
		return ""
	case !strings.ContainsAny(pattern[:1], "*?") && !strings.Contains(begin, pattern[:1]):
		return begin
	case strings.ContainsAny(pattern, "*?/"):
		return ""
	}
	return begin[:strings.LastIndexByte(begin, '/')+1]
}

// PlainPattern reports whether bash and the parser read an expansion that removes or replaces a pattern in the same way
// although it has quotes: ${x#\# }, ${x//\//-}, ${x#"# "}.
func PlainPattern(expansion string) bool { return plainPattern().MatchString(expansion) }

var plainPattern = lazyregexp.New(`^\$\{\w+(?:##?|%%?|//?|/[#%])(?:[\w .,:/@=+*?-]|\\[#/.*?_:=@%+ -]|\\\\/|"[\w #.,:/@=+-]*")*\}$`)
