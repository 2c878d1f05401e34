package shell

import (
	"strings"

	"github.com/toold/toold/policy"
)

// scan records what could be commands in a text that is not followed, for the
// rules that deny: its words between all that may part two commands, without
// quotes. It takes no part in what may be allowed, since the text is Opaque.
func (w *walker) scan(text string) {
	if w.scanned == nil {
		w.scanned = make(map[string]struct{}, len(text)/32)
	}
	for text != "" {
		end := 0
		for end < len(text) && !partsCommands(text[end]) {
			end++
		}
		w.scanSegment(strings.TrimSpace(text[:end]))
		text = text[min(end+1, len(text)):]
	}
}

// partsCommands reports whether a command may end before a byte.
func partsCommands(c byte) bool {
	switch c {
	case ';', '\n', '|', '&', '(', ')', '`', '{', '}':
		return true
	}
	return false
}

// scanSegment records a text that may be one command.
func (w *walker) scanSegment(segment string) {
	if _, known := w.scanned[segment]; known || segment == "" {
		return
	}
	w.scanned[segment] = struct{}{}
	plain := segment
	if strings.ContainsAny(plain, withoutMeaning) {
		plain = withoutQuotes.Replace(plain)
	}
	argv := unknownProgram(min(strings.Count(plain, " ")+1, maxWords))
	for f := range strings.FieldsSeq(plain) {
		text, _, dynamic := strings.Cut(f, "$")
		argv = append(argv, policy.Word{Text: text, Dynamic: dynamic})
	}
	if len(argv) > 1 {
		w.add(policy.Effect{Kind: policy.Exec, Argv: argv, Possible: true, Source: segment})
	}
}

// withoutMeaning are the characters that do not change which command a word names.
const withoutMeaning = `'"\`

var withoutQuotes = strings.NewReplacer(`'`, "", `"`, "", `\`, "")

// suffixes records, for the rules that deny, what is not followed.
func (w *walker) suffixes(args []word, source string) {
	argv := appendWords(unknownProgram(len(args)), args)
	w.add(policy.Effect{Kind: policy.Exec, Argv: argv, Possible: true, Source: source})
}

// unknownProgram begins a command whose words may be commands themselves: a program
// that is not known may run any of them. There is room for n words after it.
func unknownProgram(n int) []policy.Word {
	return append(make([]policy.Word, 0, n+1), policy.Word{Text: "?"})
}
