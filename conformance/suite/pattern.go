//go:build linux

package suite

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/toold/toold/internal/lazyregexp"
)

var (
	patternFlags = lazyregexp.New(`^\(\?[imsU]+\)`)
	lookahead    = lazyregexp.New(`^\(\?[=!]`)
)

// Find searches with a regular expression. Go's have no look-ahead; the cases
// use it at the beginning to say "all of these, in any order", which is done
// here: at some position every look-ahead and the rest must match.
func Find(pattern, text string) (bool, error) {
	flags := patternFlags().FindString(pattern)
	rest := pattern[len(flags):]
	var want, refuse []*regexp.Regexp
	for lookahead().MatchString(rest) {
		end := closing(rest)
		if end < 0 {
			return false, fmt.Errorf("the expression %q is not complete", pattern)
		}
		re, err := regexp.Compile(flags + `\A(?:` + rest[3:end] + `)`)
		if err != nil {
			return false, fmt.Errorf("the expression %q is not supported: %v", pattern, err)
		}
		if rest[2] == '=' {
			want = append(want, re)
		} else {
			refuse = append(refuse, re)
		}
		rest = rest[end+1:]
	}
	if want == nil && refuse == nil {
		re, err := regexp.Compile(pattern)
		if err != nil {
			return false, fmt.Errorf("the expression %q is not supported: %v", pattern, err)
		}
		return re.MatchString(text), nil
	}
	re, err := regexp.Compile(flags + `\A(?:` + rest + `)`)
	if err != nil {
		return false, fmt.Errorf("the expression %q is not supported: %v", pattern, err)
	}
	matches := func(at string) func(*regexp.Regexp) bool {
		return func(re *regexp.Regexp) bool { return re.MatchString(at) }
	}
	for i := 0; i <= len(text); i++ {
		at := text[i:]
		if re.MatchString(at) && !slices.ContainsFunc(refuse, matches(at)) &&
			!slices.ContainsFunc(want, func(re *regexp.Regexp) bool { return !re.MatchString(at) }) {
			return true, nil
		}
	}
	return false, nil
}

// closing returns where the parenthesis that begins a pattern closes.
func closing(pattern string) int {
	depth, class := 0, false
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}
