package display

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Visible escapes control, invisible and direction-changing characters, letters that look like Latin ones beside which
// they are, and invalid UTF-8. It keeps newlines and tabs.
func Visible(text string) string {
	var b strings.Builder
	latin, end := false, 0 // of the word, which has Latin letters
	for i, r := range text {
		if i >= end {
			latin, end = word(text, i)
		}
		switch {
		case latin && r >= utf8.RuneSelf && strings.ContainsRune(lookalikes, r):
			fmt.Fprintf(&b, `\u{%04x}`, r)
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd"):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case IsUnseen(r):
			fmt.Fprintf(&b, `\u{%04x}`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// word returns where the letters at an offset of text end, and whether there are Latin ones.
func word(text string, at int) (latin bool, end int) {
	for i, r := range text[at:] {
		if !unicode.IsLetter(r) {
			return latin, at + i
		}
		latin = latin || unicode.Is(unicode.Latin, r)
	}
	return latin, len(text)
}

// lookalikes lists Cyrillic, Greek and Armenian letters that look like Latin ones.
const lookalikes = "\u0430\u0432\u0435\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445\u0455\u0456\u0458\u0475\u04ab\u04af\u04bb\u04cf\u04d5\u0501\u051b\u051d" +
	"\u0405\u0406\u0408\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u04ae\u04c0\u04d4\u050c\u051a\u051c" +
	"\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03b1\u03b3\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7\u03f2\u03f3\u03f9" +
	"\u0555\u0561\u0563\u0566\u0570\u0578\u057d\u0581\u0585"

// Line is like Visible, but also escapes newlines.
func Line(text string) string { return strings.ReplaceAll(Visible(text), "\n", `\n`) }

const (
	maxLineRunes = 1000 // characters of a line
	maxLines     = 100  // lines of a quotation
	maxTextRunes = 8000 // characters of a quotation
)

// Short is like Line, but cuts the text after 1000 characters with a notice.
func Short(text string) string { return truncate(Line(text), maxLineRunes) }

func truncate(line string, limit int) string {
	n := 0
	for i := range line {
		if n++; n > limit {
			return fmt.Sprintf("%s… (%d more characters)", line[:i], utf8.RuneCountInString(line[i:]))
		}
	}
	return line
}

// Quote prefixes each line of text with indent and "| ", so that none can be mistaken for a line by toold. It leaves
// out the middle of a long text, and of long lines in it, with a notice that says how to see the rest.
func Quote(text, indent, notice string) string {
	lines := strings.Split(Visible(text), "\n")
	var b strings.Builder
	quote := func(lines []string, limit int) (shown int) {
		for _, line := range lines {
			if limit -= utf8.RuneCountInString(line); limit < 0 && shown > 0 {
				return shown
			}
			fmt.Fprintf(&b, "%s| %s\n", indent, line)
			shown++
		}
		return shown
	}
	if len(lines) <= maxLines && utf8.RuneCountInString(strings.Join(lines, "")) <= maxTextRunes {
		quote(lines, maxTextRunes)
		return b.String()
	}
	last := len(lines) // where the last lines that are shown begin
	for left := maxTextRunes / 2; last > max(len(lines)-maxLines/5, 0) && left > 0; last-- {
		lines[last-1] = withoutMiddle(lines[last-1], notice)
		left -= utf8.RuneCountInString(lines[last-1])
	}
	for i := range min(last, maxLines) {
		lines[i] = withoutMiddle(lines[i], notice)
	}
	shown := quote(lines[:min(last, maxLines*4/5)], maxTextRunes/2)
	if last > shown {
		fmt.Fprintf(&b, "%s(%d lines are not shown; %s)\n", indent, last-shown, notice)
	}
	quote(lines[last:], maxTextRunes)
	return b.String()
}

func withoutMiddle(line, notice string) string {
	runes := []rune(line)
	end := len(runes) - maxLineRunes/2
	if end <= maxLineRunes/2 {
		return line
	}
	return fmt.Sprintf("%s… (%d characters are not shown; %s) …%s", string(runes[:maxLineRunes/2]), end-maxLineRunes/2, notice, string(runes[end:]))
}

// JSON escapes, in JSON, the characters that Visible escapes.
func JSON(text string) string {
	var b strings.Builder
	for _, r := range text {
		plain := r == '\n' || r == '\t' || r == utf8.RuneError
		switch {
		case plain || !IsUnseen(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// IsUnseen reports whether a person cannot see r, or may take it for a space.
func IsUnseen(r rune) bool {
	return !unicode.IsPrint(r) || unicode.Is(unicode.Variation_Selector, r) || strings.ContainsRune(blanks, r)
}

// blanks lists the characters without ink that unicode.IsPrint accepts.
const blanks = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\U00013441\U00013442\U00016fe4\U0001d159"
