package shell

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Texts that bash and our parser read differently, or that people read
// differently from both, are not analysed. Each case was seen with bash 5.2 and
// mvdan.cc/sh v3.14.

// maxScript bounds the text that is analysed.
const maxScript = 64 << 10

// refuse returns why a text must not be analysed, or "". In what is veiled nothing is
// for the shell; see veil.
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
	case oddContinuation(veiled):
		return "a backslash at the end of a line can hide where commands begin; write the command on one line"
	case bracesAfterName(veiled):
		return "braces directly after a variable's name are expanded first"
	case deepAt(veiled) >= 0:
		return "it nests too deeply"
	}
	return ""
}

// syntaxErrors are what the parser says of texts that bash refuses, too; bashPlain are
// texts of which there are no two readings.
var (
	syntaxErrors = regexp.MustCompile("^reached EOF without|can only immediately follow a statement$|must be followed by|statement must end with|can only be used to")
	bashPlain    = regexp.MustCompile(`^[\w\s./,:@%+;&|>)'"-]*$`)
	notPlain     = regexp.MustCompile(`\b(?:case|coproc|declare|esac|export|for|function|let|local|readonly|select|time|typeset)\b`)
)

// bashRefuses reports whether bash certainly finds an error where the parser found one:
// then it runs nothing of that line, nor what comes after it. Where a sandbox confines the
// call that need not be asked.
func bashRefuses(problem, rest string) bool {
	return len(rest) < 1<<10 && syntaxErrors.MatchString(problem) && bashPlain.MatchString(rest) && !notPlain.MatchString(rest)
}

// oddCharacter names characters that are invisible, move text, or part words for
// one reader and not for the other.
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

// oddContinuation reports a backslash before a line break where the two parsers
// disagree: in comments, here-documents, or in the middle of a word.
func oddContinuation(script string) bool {
	document := strings.Contains(script, "<<")
	for i := 0; ; i++ {
		n := strings.Index(script[i:], "\\\n")
		if n < 0 {
			return false
		}
		i += n
		start := strings.LastIndexByte(script[:i], '\n') + 1
		if i == start || script[i-1] != ' ' && script[i-1] != '\t' {
			return true
		}
		if document || strings.Contains(script[start:i], "#") {
			return true
		}
	}
}

// bracesAfterName reports $name{…}: bash makes $name1 $name2 of $name{1,2}.
func bracesAfterName(script string) bool {
	for i := 0; i+1 < len(script); i++ {
		if script[i] != '$' {
			continue
		}
		j := i + 1
		for j < len(script) && (script[j] == '_' || isAlnum(script[j])) {
			j++
		}
		if j == i+1 && strings.IndexByte("@*#?-$!", script[j]) >= 0 {
			j++
		}
		if j > i+1 && j < len(script) && script[j] == '{' {
			return true
		}
	}
	return false
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// maxParens bounds how many brackets may be open, since the parser is recursive.
const maxParens = 100

// deepAt returns where too many brackets are open, -1 if they never are. It counts
// them without understanding them.
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
