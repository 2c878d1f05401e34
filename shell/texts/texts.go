// Package texts finds scripts that bash and a parser of bash, or people, may read differently. It also reads quoted
// texts and patterns as bash does. It runs and opens nothing.
package texts

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toold/toold/internal/lazyregexp"
)

// Each refused case was observed with bash 5.2 and mvdan.cc/sh v3.14.

// MaxScript is the length in bytes of the longest accepted script.
const MaxScript = 64 << 10

// Refuse returns why a script is refused, or "" if it is not. veiled is the result of Veil.
func Refuse(script, veiled string) string {
	switch {
	case len(script) > MaxScript:
		return "it is longer than 64 KiB; write it to a file and run that"
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
		return "bash drops a backslash at the end of some texts and keeps it at that of others; leave it out"
	case strings.Contains(veiled, "\\\n") && mayHide(veiled):
		return "a backslash at the end of a line can hide where commands begin; write the command on one line"
	case bracesAfterName().MatchString(veiled):
		return "braces directly after a variable's name are expanded first; write ${NAME}"
	case DeepAt(veiled) >= 0:
		return "it nests too deeply"
	}
	return ""
}

// mayHide reports whether the continuation of a line may be read in several ways.
func mayHide(script string) bool {
	odd := strings.Contains(script, "<<") || oddContinuation().MatchString(script)
	return odd && !plainQuotes().MatchString(script)
}

// syntaxErrors are parser errors that bash reports too; endErrors are those for unfinished texts.
var (
	syntaxErrors = lazyregexp.New("can only immediately follow a statement$|must be followed by|can only be used (?:to|in)")
	endErrors    = lazyregexp.New("^reached EOF without|statement must end with")
	bashPlain    = lazyregexp.New(`^[\w\s./,:@%+;&|>)'"-]*`)
	notPlain     = lazyregexp.New(`\b(?:case|coproc|declare|esac|export|for|function|let|local|readonly|select|time|typeset)\b`)
)

// BashRefuses reports whether bash certainly rejects what the parser rejected with problem. rest begins with the
// statement.
func BashRefuses(problem, rest string) bool {
	read := bashPlain().FindString(rest)
	if len(rest) >= 1<<10 || notPlain().MatchString(read) {
		return false
	}
	if refused := syntaxErrors().MatchString(problem); !refused || read == rest {
		return refused || read == rest && endErrors().MatchString(problem)
	}
	// An error is certain if appending a word does not change it.
	_, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(read+" x"), "")
	return err != nil && strings.HasSuffix(err.Error(), ": "+problem)
}

func oddCharacter(r rune) string {
	switch {
	case r == '\n', r == '\t', r >= ' ' && r < 0x7f:
		return ""
	case unicode.Is(unicode.Cc, r):
		return "it holds a control character"
	case unicode.In(r, unicode.Cf, unicode.Zs, unicode.Zl, unicode.Zp, unicode.Variation_Selector) || strings.ContainsRune(blankLetters, r):
		return "it holds an invisible character or an unusual blank"
	}
	return ""
}

const blankLetters = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\U00013441\U00013442\U00016fe4\U0001d159"

// oddContinuation matches line continuations in comments and inside words.
var (
	oddContinuation = lazyregexp.New(`(?:\A|[^ \t])\\\n|#[^\n]*\\\n`)
	plainQuotes     = lazyregexp.New("^(?:[^'\"#\\\\$`<]|'[^']*')*$") // no continuation but in single quotes
	bracesAfterName = lazyregexp.New(`\$(?:\w+|[-@*#?$!])\{`)
)

const maxParens = 100

// DeepAt returns the offset where a script nests so deeply that a parser may overflow its stack, or -1.
func DeepAt(script string) int {
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

// writes matches a line that only writes a quoted document to a file.
var writes = lazyregexp.New(`^(?:` + harmless + ` && )*cat (?:>>? ?` + plainPath + ` <<(?:'(\w+)'|"(\w+)")|<<(?:'(\w+)'|"(\w+)") >>? ?` + plainPath + `)$`)

var before = lazyregexp.New(`^(?:|set -[eux]+(?:o pipefail)?|` + harmless + `(?: && ` + harmless + `)*)$`)

const (
	plainPath = `[A-Za-z0-9_./@%+:,-]+`
	harmless  = `(?:mkdir|touch|cd|rm|ls|echo|pwd)(?: [A-Za-z0-9_./@%+:,=-]+)*`
)

const (
	maxVeiling = 64
	maxVeiled  = 1 << 10
)

// Veil replaces the contents of here-documents that are only written to files, since parsers differ in where they
// end. replaced has the lines that it replaced.
func Veil(script string) (veiled, replaced string) {
	var out strings.Builder
	lines := strings.Split(script, "\n")
	for i, looked := 0, 0; i < len(lines) && looked < maxVeiling && len(lines[i]) <= maxVeiled; i, looked = i+1, looked+1 {
		word := ""
		if found := writes().FindStringSubmatch(lines[i]); found != nil {
			word = strings.Join(found[1:], "")
		}
		if word == "" && before().MatchString(lines[i]) {
			continue
		}
		body := lines[i+1:]
		end := slices.Index(body, word)
		if word == "" || end < 0 {
			break
		}
		for j, line := range body[:end] {
			if body[j] = strings.Repeat(".", len(line)); body[j] != line {
				out.WriteString(line + "\n")
			}
		}
		i += 1 + end
	}
	return strings.Join(lines, "\n"), out.String()
}

// OtherwiseRead reports whether a text may mean something else to other shells than bash.
func OtherwiseRead(text string) bool {
	text = sharedExpansion().ReplaceAllString(text, "")
	marks := []string{"{", "$'", "[[", "<(", ">(", "&>", ">&", "((", "<<<", "function", "=(", "=~", "+=", "|&", "$\"", "]=", "**", "alias"}
	return slices.ContainsFunc(marks, func(mark string) bool { return strings.Contains(text, mark) })
}

// sharedExpansion matches expansions that all shells have.
var sharedExpansion = lazyregexp.New(`\$\{(?:#?\w+|[@*#?$!-]|\w+(?::?[-=+?]|%%?|##?)[\w.,:/ *@%+-]*)\}`)

// ANSIC decodes the text between the quotes of $'…'. ok is false if bash may decode it differently.
func ANSIC(s string) (text string, ok bool) {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			return "", false
		}
		if j := strings.IndexByte(`abeEfnrtv\'"?`, s[i]); j >= 0 {
			out.WriteByte("\a\b\x1b\x1b\f\n\r\t\v\\'\"?"[j])
			continue
		}
		digits, base := number(s[i:])
		n, err := strconv.ParseUint(digits, base, 64)
		if err != nil || n == 0 || n > 0x7e {
			return "", false
		}
		i += strings.Index(s[i:], digits) + len(digits) - 1
		out.WriteByte(byte(n))
	}
	return out.String(), true
}

func number(s string) (digits string, base int) {
	most, base, allowed := 3, 8, "01234567"
	if i := strings.IndexByte("xuU", s[0]); i >= 0 {
		s, most, base, allowed = s[1:], 2<<i, 16, "0123456789abcdefABCDEF"
	}
	n := 0
	for n < min(most, len(s)) && strings.IndexByte(allowed, s[n]) >= 0 {
		n++
	}
	return s[:n], base
}

const maxTrim = 256

// Trim removes what a pattern matches from the beginning (op # or ##) or the end (% or %%) of a text, as bash does. ok
// is false if it does not support the pattern or the text.
func Trim(op, text, pattern string) (left string, ok bool) {
	both := text + pattern
	if strings.ContainsAny(pattern, `[]\()|`) || len(both) > maxTrim || strings.ContainsFunc(both, func(r rune) bool { return r >= 0x80 }) {
		return "", false
	}
	var expr strings.Builder
	for _, c := range pattern {
		expr.WriteString(map[rune]string{'*': ".*", '?': "."}[c])
		if c != '*' && c != '?' {
			expr.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	whole := regexp.MustCompile("(?s)^(?:" + expr.String() + ")$")
	for i := range len(text) + 1 {
		n := i
		if len(op) == 2 {
			n = len(text) - i
		}
		if op[0] == '#' {
			if whole.MatchString(text[:n]) {
				return text[n:], true
			}
		} else if whole.MatchString(text[len(text)-n:]) {
			return text[:len(text)-n], true
		}
	}
	return text, true
}
