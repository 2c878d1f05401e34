package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxTrim bounds the texts that ${x%y} is computed for: each end is tried.
const maxTrim = 256

// trim computes ${x#y} and ${x%y}, each with one sign or two. ok is false where the
// value, or the pattern, is not known or not simple.
func trim(op syntax.ParExpOperator, v, pattern value) (text string, ok bool) {
	simple := v.known() && pattern.known() && !strings.ContainsAny(pattern.text, `[]\()|`)
	if !simple || !isASCII(v.text+pattern.text) || len(v.text)+len(pattern.text) > maxTrim {
		return "", false
	}
	for i := range len(v.text) + 1 {
		n := i // letters that are cut off
		if op == syntax.RemLargePrefix || op == syntax.RemLargeSuffix {
			n = len(v.text) - i
		}
		if op == syntax.RemSmallPrefix || op == syntax.RemLargePrefix {
			if matches(pattern.text, v.text[:n]) {
				return v.text[n:], true
			}
		} else if matches(pattern.text, v.text[len(v.text)-n:]) {
			return v.text[:len(v.text)-n], true
		}
	}
	return v.text, true
}

// matches reports whether a pattern of *, ? and letters matches all of a text.
func matches(pattern, text string) bool {
	star, from := -1, 0
	p, t := 0, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p, t = p+1, t+1
		case star >= 0:
			from++
			p, t = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

func itoa(n int) string { return strconv.Itoa(n) }

// atoi reads a number of digits; one that is too long is larger than any other.
func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 1 << 30
	}
	return n
}
