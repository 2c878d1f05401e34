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
