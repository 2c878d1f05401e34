package display

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Visible escapes control, invisible and direction-changing characters and invalid UTF-8,
// so that an approver sees all of a text, in order. It keeps newlines and tabs.
func Visible(text string) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd"):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case unseen(r):
			fmt.Fprintf(&b, `\u{%04x}`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Line is Visible of text on one line.
func Line(text string) string { return strings.ReplaceAll(Visible(text), "\n", `\n`) }

// How much of a text of others is shown to a person at once.
const (
	shownLine  = 1000 // characters of a line
	shownLines = 100  // lines of a quotation, and
	shownText  = 8000 // characters of them
)

// Short is Line, cut after 1000 characters. It says how many it left out.
func Short(text string) string { return shortened(Line(text), shownLine) }

func shortened(line string, most int) string {
	n := 0
	for i := range line {
		if n++; n > most {
			return fmt.Sprintf("%s… (%d more characters)", line[:i], utf8.RuneCountInString(line[i:]))
		}
	}
	return line
}

// Quote returns the lines of text, each behind indent and "| ", so that none looks like a line of toold. Of
// long texts it returns the beginning and the last lines, says how much it left out, and names all, which
// has the whole text.
func Quote(text, indent, all string) string {
	lines := strings.Split(Visible(text), "\n")
	var b strings.Builder
	quote := func(lines []string, most int) (shown int) {
		for _, line := range lines {
			line = shortened(line, shownLine)
			if most -= utf8.RuneCountInString(line); most < 0 && shown > 0 {
				return shown
			}
			fmt.Fprintf(&b, "%s| %s\n", indent, line)
			shown++
		}
		return shown
	}
	last := lines[max(len(lines)-shownLines/5, 0):]
	if len(lines) <= shownLines && utf8.RuneCountInString(strings.Join(lines, "")) <= shownText {
		quote(lines, shownText)
		return b.String()
	}
	shown := quote(lines[:min(len(lines)-len(last), shownLines-len(last))], shownText/2)
	last = lines[max(len(lines)-len(last), shown):]
	if left := len(lines) - len(last) - shown; left > 0 {
		fmt.Fprintf(&b, "%s(%d lines are not shown; %s)\n", indent, left, all)
	}
	if more := len(last) - quote(last, shownText/2); more > 0 {
		fmt.Fprintf(&b, "%s(%d more lines are not shown; %s)\n", indent, more, all)
	}
	return b.String()
}

// JSON returns the same JSON, with those characters escaped that Visible escapes.
func JSON(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t' || r == utf8.RuneError || !unseen(r):
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

// unseen reports whether a character is none that a person sees where it is.
func unseen(r rune) bool {
	return !unicode.IsPrint(r) || unicode.Is(unicode.Variation_Selector, r) || strings.ContainsRune(emptyLetters, r)
}

// emptyLetters contains invisible letters and symbols.
const emptyLetters = "\u034f\u115f\u1160\u3164\uffa0\u2800"
