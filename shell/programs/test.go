package programs

import "strings"

// test handles the words of test and [. A word that may be an operator makes it opaque: some
// evaluate their operand.
func (c *Command) test(words []Word) {
	const binary = "= == != < > -nt -ot -ef -eq -ne -lt -le -gt -ge"
	operator := func(i int) bool {
		return i >= 0 && i < len(words) && !words[i].Dynamic && IsField(binary, words[i].Text)
	}
	unary := func(i int) bool {
		return i >= 0 && !words[i].Dynamic && len(words[i].Text) == 2 && strings.HasPrefix(words[i].Text, "-")
	}
	if n := len(words); n > 0 && words[n-1] == (Word{Text: "]"}) {
		words = words[:n-1]
	}
	for i, w := range words {
		operand := operator(i-1) || operator(i+1) || unary(i-1) || len(words) == 1
		if w.Many || w.Dynamic && !operand {
			c.Opaque, c.Anything = unknownPart("test"), true
		}
	}
}
