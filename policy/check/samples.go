package check

import (
	"strings"

	"github.com/toold/toold/policy"
)

// maxSamples bounds the commands that are tried for one pattern.
const maxSamples = 32

// samples are commands that a pattern names: each alternative of a word once,
// an operand for *, nothing for **. A pattern with quotes gives none.
func samples(pattern string) []string {
	if strings.ContainsAny(pattern, `'"\`) {
		return nil
	}
	list := []string{""}
	for _, word := range strings.Fields(pattern) {
		var next []string
		for _, before := range list {
			for _, choice := range alternatives(word) {
				choice = strings.ReplaceAll(strings.ReplaceAll(choice, "**", ""), "*", "sample")
				next = append(next, strings.TrimSpace(before+" "+choice))
			}
		}
		if len(next) == 0 {
			return nil
		}
		list = next[:min(len(next), maxSamples)]
	}
	if list[0] == "" {
		return nil // of any program
	}
	return list
}

// alternatives names each choice of the braces in a text, up to maxSamples; nested
// ones give none.
func alternatives(text string) (list []string) {
	before, rest, ok := strings.Cut(text, "{")
	if !ok {
		return []string{text}
	}
	inner, after, _ := strings.Cut(rest, "}")
	if strings.Contains(inner, "{") {
		return nil
	}
	for choice := range strings.SplitSeq(inner, ",") {
		for _, end := range alternatives(after) {
			if len(list) < maxSamples {
				list = append(list, before+choice+end)
			}
		}
	}
	return list
}

func literal(words []string) []policy.Word {
	argv := make([]policy.Word, len(words))
	for i, w := range words {
		argv[i].Text = w
	}
	return argv
}
