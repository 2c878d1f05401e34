package files

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"github.com/toold/toold/internal/redact"
)

// notFound describes for the model what is most like a missing text. It inspects a bounded part.
func notFound(content []byte, sought string) string {
	const mostContent, mostLines = 1 << 20, 20
	content = content[:min(len(content), mostContent)]
	if len(bytes.TrimSpace(content)) == 0 {
		return "the file is empty"
	}
	lines := strings.Split(strings.ToValidUTF8(string(content), "\ufffd"), "\n")
	wanted := strings.SplitN(strings.Trim(sought, "\r\n"), "\n", mostLines+1)
	wanted = wanted[:min(len(wanted), mostLines)]
	if at := alike(lines, wanted, withoutSpace); at >= 0 {
		return fmt.Sprintf("%s differ from it only in white space: %s", lineRange(at, len(wanted)), quote(lines[at:at+len(wanted)]))
	}
	if at := alike(lines, wanted, strings.ToLower); at >= 0 {
		return fmt.Sprintf("%s differ from it only in upper and lower case: %s", lineRange(at, len(wanted)), quote(lines[at:at+len(wanted)]))
	}
	if at := mostSimilar(lines, firstLine(wanted)); at >= 0 {
		return fmt.Sprintf("the nearest is line %d: %s", at+1, quote(lines[at:at+1]))
	}
	return "no line of it is similar; read the file again"
}

func lineRange(at, n int) string {
	if n == 1 {
		return fmt.Sprintf("parts of line %d", at+1)
	}
	return fmt.Sprintf("lines %d to %d", at+1, at+n)
}

func quote(lines []string) string {
	const most = 400
	text := strings.Join(lines, "\n")
	if len(text) > most {
		return fmt.Sprintf("%q…", redact.Beginning(text, most))
	}
	return fmt.Sprintf("%q", text)
}

func firstLine(lines []string) string {
	for _, line := range lines {
		if strings.TrimSpace(line) != "" {
			return line
		}
	}
	return ""
}

func withoutSpace(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}

// alike returns the first line at which the lines equal those wanted after folding, or -1. A single
// line may be part of a longer one.
func alike(lines, wanted []string, fold func(string) string) int {
	folded := make([]string, len(wanted))
	for i, w := range wanted {
		folded[i] = fold(strings.TrimSuffix(w, "\r"))
	}
	if strings.Join(folded, "") == "" {
		return -1
	}
	run := make([]string, len(lines))
	for i, line := range lines {
		run[i] = fold(strings.TrimSuffix(line, "\r"))
	}
	for at := 0; at+len(folded) <= len(run); at++ {
		if len(folded) == 1 && strings.Contains(run[at], folded[0]) || startsWith(run[at:], folded) {
			return at
		}
	}
	return -1
}

func startsWith(lines, wanted []string) bool {
	for i, w := range wanted {
		if lines[i] != w {
			return false
		}
	}
	return true
}

// mostSimilar returns the line most like the wanted one, or -1 if none shares half. It compares
// beginnings and ends, in linear time.
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

const stride = 64

func commonPrefix(a, b string) int {
	n := 0
	for n+stride <= min(len(a), len(b)) && a[n:n+stride] == b[n:n+stride] {
		n += stride
	}
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

func commonSuffix(a, b string) int {
	n := 0
	for n+stride <= min(len(a), len(b)) && a[len(a)-n-stride:len(a)-n] == b[len(b)-n-stride:len(b)-n] {
		n += stride
	}
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}
