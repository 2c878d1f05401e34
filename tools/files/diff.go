package files

import (
	"fmt"
	"math"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/hexops/gotextdiff"
	"github.com/hexops/gotextdiff/myers"
	"github.com/hexops/gotextdiff/span"
)

const (
	diffContext = 3
	diffLines   = 200_000 // longer texts are not compared
	exactLines  = 300     // up to this, a quadratic algorithm finds the smallest diff
)

// Diff returns the unified diff of two texts, or "" if they are equal.
func Diff(from, to, before, after string) string {
	return unified(from, to, before, after, math.MaxInt)
}

func unified(from, to, before, after string, most int) string {
	if before == after {
		return ""
	}
	if strings.Contains(before, "\x00") {
		return instead(from, to, fmt.Sprintf("%d binary bytes, replaced by", len(before)), after, most)
	}
	head, before, after := trimEqual(before, after)
	if lines := strings.Count(before, "\n") + strings.Count(after, "\n"); lines > diffLines {
		why := fmt.Sprintf("%d lines are too many to compare; line %d on is replaced by", lines, head+1)
		return instead(from, to, why, after, most)
	}
	u := gotextdiff.ToUnified(from, to, before, edits(before, after))
	return strings.ToValidUTF8(format(u, head, most), "\ufffd")
}

// instead returns the new text in place of a diff, with the reason.
func instead(from, to, why, after string, most int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n\\ %s\n", from, to, why)
	if after == "" {
		return b.String() + "\\ nothing\n"
	}
	left := 0
	for line := range strings.Lines(after) {
		if left > 0 || b.Len()+len(line) > most {
			left++
			continue
		}
		b.WriteString("+" + line)
		if !strings.HasSuffix(line, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
	if left > 0 {
		fmt.Fprintf(&b, "\\ Diff cut here: %d more lines\n", left)
	}
	return strings.ToValidUTF8(b.String(), "\ufffd")
}

// trimEqual removes equal lines at both ends, except those that the diff shows as context.
func trimEqual(a, b string) (head int, restA, restB string) {
	n := commonPrefix(a, b)
	n = strings.LastIndexByte(a[:n], '\n') + 1
	for range diffContext {
		n = strings.LastIndexByte(a[:max(n-1, 0)], '\n') + 1
	}
	head = strings.Count(a[:n], "\n")
	a, b = a[n:], b[n:]

	m := commonSuffix(a, b)
	for range 1 + diffContext { // the first may be part of a line
		if i := strings.IndexByte(a[len(a)-m:], '\n'); i >= 0 {
			m -= i + 1
		} else {
			m = 0
		}
	}
	return head, a[:len(a)-m], b[:len(b)-m]
}

func edits(before, after string) []gotextdiff.TextEdit {
	if strings.Count(before, "\n")+strings.Count(after, "\n") <= exactLines {
		return myers.ComputeEdits("", before, after)
	}
	var list []gotextdiff.TextEdit
	line, offset := 1, 0
	at := func(to int) span.Point {
		line += strings.Count(before[offset:to], "\n")
		if to == len(before) && to > 0 && before[to-1] != '\n' {
			line++ // as if the last line were terminated
		}
		offset = to
		return span.NewPoint(line, 1, to)
	}
	for _, e := range udiff.Lines(before, after) {
		start, end := at(e.Start), at(e.End)
		list = append(list, gotextdiff.TextEdit{Span: span.New("", start, end), NewText: e.New})
	}
	return list
}

// format writes a diff with line numbers increased by skipped. It replaces the format of gotextdiff, which counts an
// empty side as one line.
func format(u gotextdiff.Unified, skipped, most int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", u.From, u.To)
	left := 0 // lines omitted beyond most
	for _, h := range u.Hunks {
		if left == 0 {
			old, add := count(h.Lines)
			fmt.Fprintf(&b, "@@ -%s +%s @@\n", lineNumbers(h.FromLine+skipped, old), lineNumbers(h.ToLine+skipped, add))
		}
		for _, l := range h.Lines {
			if left > 0 || b.Len()+len(l.Content) > most {
				left++
				continue
			}
			b.WriteByte(map[gotextdiff.OpKind]byte{gotextdiff.Delete: '-', gotextdiff.Insert: '+', gotextdiff.Equal: ' '}[l.Kind])
			b.WriteString(l.Content)
			if !strings.HasSuffix(l.Content, "\n") {
				b.WriteString("\n\\ No newline at end of file\n")
			}
		}
	}
	if left > 0 {
		fmt.Fprintf(&b, "\\ Diff cut here: %d more lines\n", left)
	}
	return b.String()
}

func count(lines []gotextdiff.Line) (before, after int) {
	for _, l := range lines {
		if l.Kind != gotextdiff.Insert {
			before++
		}
		if l.Kind != gotextdiff.Delete {
			after++
		}
	}
	return before, after
}

func lineNumbers(first, n int) string {
	switch n {
	case 0:
		return fmt.Sprintf("%d,0", first-1)
	case 1:
		return fmt.Sprint(first)
	default:
		return fmt.Sprintf("%d,%d", first, n)
	}
}
