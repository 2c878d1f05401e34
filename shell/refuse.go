package shell

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Texts that bash and our parser read differently, or that people read
// differently from both, are not analysed. Each case was seen with bash 5.2 and
// mvdan.cc/sh v3.14.

// maxScript bounds the text that is analysed.
const maxScript = 64 << 10

// refuse returns why a text must not be analysed, or "".
func refuse(script, veiled string) string {
	switch {
	case len(script) > maxScript:
		return "it is longer than 64 KiB"
	case !utf8.ValidString(script):
		return "it is not valid UTF-8"
	}
	for _, r := range script {
		if why := oddCharacter(r); why != "" {
			return why
		}
	}
	switch {
	case strings.HasSuffix(script, `\`) && strings.Contains(script, "\n"):
		return "bash drops a backslash at the end of some texts and keeps it at that of others"
	case strings.Contains(veiled, "\\\n") && (strings.Contains(veiled, "<<") || oddContinuation.MatchString(veiled)):
		return "a backslash at the end of a line can hide where commands begin; write the command on one line"
	case bracesAfterName.MatchString(veiled):
		return "braces directly after a variable's name are expanded first"
	case deepAt(veiled) >= 0:
		return "it nests too deeply"
	}
	return ""
}

// syntaxErrors are what the parser says of texts that bash refuses, too, wherever they
// end; endErrors of those that do not end. bashPlain is a text without two readings.
var (
	syntaxErrors = regexp.MustCompile("can only immediately follow a statement$|must be followed by|can only be used (?:to|in)")
	endErrors    = regexp.MustCompile("^reached EOF without|statement must end with")
	bashPlain    = regexp.MustCompile(`^[\w\s./,:@%+;&|>)'"-]*`)
	notPlain     = regexp.MustCompile(`\b(?:case|coproc|declare|esac|export|for|function|let|local|readonly|select|time|typeset)\b`)
)

// bashRefuses reports whether bash certainly finds an error here, too, and runs no more.
func bashRefuses(problem, rest string) bool {
	read := bashPlain.FindString(rest)
	if len(rest) >= 1<<10 || notPlain.MatchString(read) {
		return false
	}
	if refused := syntaxErrors.MatchString(problem); !refused || read == rest {
		return refused || read == rest && endErrors.MatchString(problem)
	}
	// What comes after an error is not read. It is before what is not plain if a word there leaves it the same.
	_, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(read+" x"), "")
	return err != nil && strings.HasSuffix(err.Error(), ": "+problem)
}

// oddCharacter names characters that are invisible, move text, or part words for some.
func oddCharacter(r rune) string {
	switch {
	case r == '\n' || r == '\t' || r >= ' ' && r < 0x7f:
		return ""
	case unicode.Is(unicode.Cc, r):
		return "it holds a control character"
	case unicode.In(r, unicode.Cf, unicode.Zs, unicode.Zl, unicode.Zp, unicode.Variation_Selector) || strings.ContainsRune(blankLetters, r):
		return "it holds an invisible character or an unusual blank"
	}
	return ""
}

// blankLetters are letters and symbols that show as nothing.
const blankLetters = "\u034f\u115f\u1160\u3164\uffa0\u2800"

// oddContinuation is a backslash before a line break that two parsers read differently: in
// comments, or in the middle of a word.
var oddContinuation = regexp.MustCompile(`(?:\A|[^ \t])\\\n|#[^\n]*\\\n`)

// bracesAfterName is $name{…}: bash makes $name1 $name2 of $name{1,2}.
var bracesAfterName = regexp.MustCompile(`\$(?:\w+|[-@*#?$!])\{`)

// maxParens bounds how many brackets may be open, since the parser is recursive.
const maxParens = 100

// deepAt returns where too many brackets are open, -1 if they never are.
func deepAt(script string) int {
	depth := 0
	for i := range len(script) {
		switch script[i] {
		case '(', '{':
			depth++
		case ')', '}':
			depth = max(depth-1, 0)
		}
		if depth > maxParens {
			return i
		}
	}
	return -1
}

// writes is a line that only writes the quoted document behind it into a file.
var writes = regexp.MustCompile(`^(?:` + harmless + ` && )*cat (?:>>? ?` + plainPath + ` <<(?:'(\w+)'|"(\w+)")|<<(?:'(\w+)'|"(\w+)") >>? ?` + plainPath + `)$`)

// before is a line that may stand before such a line.
var before = regexp.MustCompile(`^(?:|set -[eux]+(?:o pipefail)?|` + harmless + `(?: && ` + harmless + `)*)$`)

const (
	plainPath = `[A-Za-z0-9_./@%+:,-]+`
	harmless  = `(?:mkdir|touch|cd|rm|ls|echo|pwd)(?: [A-Za-z0-9_./@%+:,=-]+)*`
)

// How many lines are looked at, documents not counted, and how long they may be.
const (
	maxVeiling = 64
	maxVeiled  = 1 << 10
)

// veil returns a script in which the documents at its beginning that only cat reads are
// dots: nothing in them is for the shell, and two parsers may differ in where they end.
func veil(script string) string {
	lines := strings.Split(script, "\n")
	for i, looked := 0, 0; i < len(lines) && looked < maxVeiling && len(lines[i]) <= maxVeiled; i, looked = i+1, looked+1 {
		word := documentOf(lines[i])
		if word == "" && before.MatchString(lines[i]) {
			continue
		}
		body := lines[i+1:]
		end := slices.Index(body, word)
		if word == "" || end < 0 {
			break
		}
		for j, line := range body[:end] {
			body[j] = strings.Repeat(".", len(line))
		}
		i += 1 + end
	}
	return strings.Join(lines, "\n")
}

// documentOf is the word that ends the document of such a line, "" of any other.
func documentOf(line string) string {
	if found := writes.FindStringSubmatch(line); found != nil {
		return strings.Join(found[1:], "") // one of them is not empty
	}
	return ""
}
