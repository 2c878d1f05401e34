package files

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toold/toold/internal/redact"
)

// notFound describes the text that is most similar to a missing one. It searches a limited part of the file.
func notFound(content []byte, sought string) string {
	const mostContent, mostLines = 1 << 20, 20
	part, next := "it", "read the file again"
	if len(content) > mostContent {
		content, part, next = content[:mostContent], "its first MiB", "search the rest with grep"
	}
	head, it := sought, "it"
	if list := strings.SplitAfterN(sought, "\n", mostLines+1); len(list) > mostLines {
		head, it = strings.Join(list[:mostLines], ""), fmt.Sprintf("its first %d lines", mostLines)
	}
	content = newFinder(content, sought).text
	switch {
	case len(content) == 0:
		return "the file is empty"
	case len(bytes.TrimSpace(content)) == 0:
		return fmt.Sprintf("%s has only white space; %s", part, next)
	}
	raw := strings.Split(string(content), "\n")
	lines := strings.Split(string([]rune(string(content))), "\n") // invalid UTF-8 becomes \ufffd, as in other results
	wanted := strings.Split(strings.Trim(head, "\r\n"), "\n")
	if i := bytes.Index(content, []byte(head)); i >= 0 && strings.TrimSpace(head) != "" {
		at, n := bytes.Count(content[:i], []byte("\n")), 1+strings.Count(strings.TrimSuffix(head, "\n"), "\n")
		return fmt.Sprintf("%s %s: %s", lineRange(at, n, "line %d contains", "lines %d to %d contain"), it, quote(lines[at:at+n]))
	}
	for _, only := range []struct {
		in   string
		fold func(string) string
	}{{"", strings.Clone}, {"white space", withoutSpace}, {"upper and lower case", strings.ToLower}} {
		at, in, hint := alike(lines, wanted, only.fold), only.in, ""
		if at >= 0 && strings.Contains(head, "\ufffd") && !utf8.ValidString(strings.Join(raw[at:at+len(wanted)], "")) {
			in = strings.TrimPrefix(in+" and bytes that are not UTF-8", " and ")
			hint = "; these cannot be in it: leave them out, or use bash"
		}
		if at >= 0 && in != "" {
			where := lineRange(at, len(wanted), "parts of line %d differ", "lines %d to %d differ")
			return fmt.Sprintf("%s from %s only in %s: %s%s", where, it, in, quote(lines[at:at+len(wanted)]), hint)
		}
	}
	first := slices.IndexFunc(wanted, func(line string) bool { return strings.TrimSpace(line) != "" })
	at := mostSimilar(lines, wanted[max(first, 0)])
	switch {
	case at < 0:
		return fmt.Sprintf("no line of %s is similar; %s", part, next)
	case part != "it":
		return fmt.Sprintf("the nearest of %s is line %d: %s", part, at+1, quote(lines[at:at+1]))
	}
	return fmt.Sprintf("the nearest is line %d: %s", at+1, quote(lines[at:at+1]))
}

func lineRange(at, n int, one, more string) string {
	if n == 1 {
		return fmt.Sprintf(one, at+1)
	}
	return fmt.Sprintf(more, at+1, at+n)
}

func quote(lines []string) string {
	const most = 400
	text := strings.Join(lines, "\n")
	if len(text) > most {
		return fmt.Sprintf("%q…", redact.Beginning(text, most))
	}
	return fmt.Sprintf("%q", text)
}

func withoutSpace(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}

// alike returns the first line from which the lines equal wanted after folding, or -1. A single line may be part of a
// longer one.
func alike(lines, wanted []string, fold func(string) string) int {
	folded := make([]string, len(wanted))
	for i, w := range wanted {
		folded[i] = fold(w)
	}
	if strings.Join(folded, "") == "" {
		return -1
	}
	run := make([]string, len(lines))
	for i, line := range lines {
		run[i] = fold(line)
	}
	for at := 0; at+len(folded) <= len(run); at++ {
		if len(folded) == 1 && strings.Contains(run[at], folded[0]) || slices.Equal(run[at:at+len(folded)], folded) {
			return at
		}
	}
	return -1
}

// mostSimilar returns the line most similar to wanted, in linear time, or -1 if none shares half of it.
func mostSimilar(lines []string, wanted string) int {
	wanted = strings.TrimSpace(wanted)
	best, share := -1, 0.5
	for i, line := range lines {
		line = strings.TrimSpace(line)
		if line == "" || wanted == "" {
			continue
		}
		head := commonPrefix(line, wanted)
		tail := commonSuffix(line[head:], wanted[head:])
		if s := 2 * float64(head+tail) / float64(len(line)+len(wanted)); s > share {
			best, share = i, s
		}
	}
	return best
}

func commonPrefix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

func commonSuffix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}
