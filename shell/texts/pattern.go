package texts

import (
	"regexp"
	"strings"
)

var (
	brackets = regexp.MustCompile(`\[[\]!^]?(?:\[[:.=][^\]]*\]|[^\]])*\]`)
	plainSet = regexp.MustCompile(`^\[(?:[A-Za-z0-9_]|0-9)+\]$`)
)

// Widened returns a pattern of filepath.Match that matches at least what bash's does.
func Widened(pattern string) string {
	if !strings.Contains(pattern, "[") {
		return pattern
	}
	if strings.Contains(pattern, `\`) {
		return "*" // quoted brackets are not distinguished
	}
	return brackets.ReplaceAllStringFunc(pattern, func(set string) string {
		if plainSet.MatchString(set) {
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
