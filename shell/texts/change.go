package texts

import (
	"strings"

	"github.com/toold/toold/internal/lazyregexp"
)

// The functions below change a text as parameter expansions of bash 5.2 do (bash(1)). ok is false for what they do not
// follow: texts that are long or not ASCII, and words with special characters.

const maxChanged = 256

var plainWord = lazyregexp.New(`^[\w.,:=/ -]+$`)

func isPlain(text string) bool {
	return len(text) <= maxChanged && !strings.ContainsFunc(text, func(r rune) bool { return r >= 0x80 })
}

// Recased changes letters as ${x^}, ${x^^}, ${x,}, ${x,,}, ${x@u}, ${x@U} and ${x@L} do. op begins with the operator.
func Recased(op, text string) (changed string, ok bool) {
	first, rest := text[:min(1, len(text))], text[min(1, len(text)):]
	switch op {
	case "^", "@u":
		text = strings.ToUpper(first) + rest
	case ",":
		text = strings.ToLower(first) + rest
	case "^^", "@U":
		text = strings.ToUpper(text)
	case ",,", "@L":
		text = strings.ToLower(text)
	default:
		return "", false
	}
	return text, isPlain(first + rest)
}

// Replaced is ${x/old/by}, or ${x//old/by} if all is set.
func Replaced(text, old, by string, all bool) (changed string, ok bool) {
	plainBy := by == "" || plainWord().MatchString(by)
	n := 1
	if all {
		n = -1
	}
	return strings.Replace(text, old, by, n), isPlain(text) && plainWord().MatchString(old) && plainBy
}

// Cut is ${x:from:length}.
func Cut(text string, from, length int) (part string, ok bool) {
	from = min(from, len(text))
	return text[from:][:min(length, len(text)-from)], isPlain(text)
}

// written returns what echo or printf prints of known words.
func written(program string, words []string) string {
	end := "\n"
	for program == "echo" && len(words) > 0 && echoFlags().MatchString(words[0]) {
		if strings.Contains(words[0], "n") {
			end = ""
		}
		words = words[1:]
	}
	text := strings.Join(words, " ")
	if program == "printf" && len(words) > 0 && printfFormat().MatchString(words[0]) {
		text, end = formatted(words[0], words[1:]), ""
	}
	if plain, ok := ANSIC(text); ok {
		return plain + end
	}
	return strings.ReplaceAll(text, `\n`, "\n") + end
}

var (
	echoFlags    = lazyregexp.New(`^-[neE]+$`)
	printfFormat = lazyregexp.New(`^[^%-](?:[^%]|%[%bs])*$|^(?:%[%bs](?:[^%]|%[%bs])*)?$`)
)

// formatted repeats a format of printf while there are words for it.
func formatted(format string, words []string) string {
	var out strings.Builder
	for first := true; first || len(words) > 0; first = false {
		before := len(words)
		for rest := format; rest != ""; {
			text, verb, _ := strings.Cut(rest, "%")
			if out.WriteString(text); verb == "" {
				break
			}
			if rest = verb[1:]; verb[0] == '%' {
				out.WriteByte('%')
			} else if len(words) > 0 {
				out.WriteString(words[0])
				words = words[1:]
			}
		}
		if len(words) == before || out.Len() > MaxScript {
			break
		}
	}
	return out.String()
}

const maxChoices = 4

// Either joins two lists of texts, each after a NUL. It returns "" if one is not known, or they are too many.
func Either(a, b string) string {
	both := a + b
	odd := len(both) > maxChanged || strings.ContainsAny(both, `*?[\`)
	if a == "" || b == "" || odd {
		return ""
	}
	for text := range strings.SplitSeq(b[1:], "\x00") {
		if !strings.Contains(a+"\x00", "\x00"+text+"\x00") {
			a += "\x00" + text
		}
	}
	if strings.Count(a, "\x00") > maxChoices {
		return ""
	}
	return a
}

// Each joins each text of a list with each one of another. It returns "" as Either does.
func Each(a, b string) (all string) {
	if a == "" || b == "" || strings.Count(a, "\x00")*strings.Count(b, "\x00") > maxChoices {
		return ""
	}
	for first := range strings.SplitSeq(a[1:], "\x00") {
		for second := range strings.SplitSeq(b[1:], "\x00") {
			all += "\x00" + first + second
		}
	}
	if len(all) > maxChanged || strings.ContainsAny(all, `*?[\`) {
		return ""
	}
	return all
}
