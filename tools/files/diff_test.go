package files

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDiffIsWhatPeopleExpect(t *testing.T) {
	t.Parallel()
	ten := "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"
	for _, tc := range []struct{ name, before, after, want string }{
		{"equal", ten, ten, ""},
		{"one line", ten, strings.Replace(ten, "5", "five", 1), "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"},
		{"first line", ten, "0\n" + ten, "@@ -1,3 +1,4 @@\n+0\n 1\n 2\n 3\n"},
		{"last line", ten, ten + "11\n", "@@ -8,3 +8,4 @@\n 8\n 9\n 10\n+11\n"},
		{"no newline at the end", "a\nb", "a\nc", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n"},
		{"newline added", "a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"},
		{"context without newline", "a\nb", "x\nb", "@@ -1,2 +1,2 @@\n-a\n+x\n b\n\\ No newline at end of file\n"},
		{"created", "", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"},
		{"emptied", "a\n", "", "@@ -1 +0,0 @@\n-a\n"},
		{"CRLF", "a\r\nb\r\n", "a\r\nB\r\n", "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+B\r\n"},
		{"not UTF-8", "\xff\n", "x\n", "@@ -1 +1 @@\n-\ufffd\n+x\n"},
	} {
		want := tc.want
		if want != "" {
			want = "--- f\n+++ f\n" + want
		}
		if diff := cmp.Diff(want, unified("f", "f", tc.before, tc.after, 1<<20)); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
}

func TestALongDiffIsCutAndSaysSo(t *testing.T) {
	t.Parallel()
	got := unified("f", "f", "", strings.Repeat("0123456789\n", 100), 200)
	if len(got) > 300 || !strings.HasSuffix(got, "+0123456789\n\\ Diff cut here: 86 more lines\n") {
		t.Errorf("got %q", got)
	}
	got = unified("f", "f", "", "evil\n"+strings.Repeat("\n", diffLines), 100)
	if want := "--- f\n+++ f\n\\ 200001 lines are too many to compare; line 1 on is replaced by\n+evil\n+\n"; !strings.HasPrefix(got, want) {
		t.Errorf("got %.200q", got)
	}
}

// patch applies a diff as patch(1) would, and refuses one that does not fit.
func patch(before, diff string) (string, error) {
	lines := strings.SplitAfter(before, "\n")
	var out strings.Builder
	next := 0
	for line := range strings.Lines(strings.ReplaceAll(diff, "\n\\ No newline at end of file\n", "\x00")) {
		line = strings.TrimPrefix(line, "\x00")
		var from, n int
		switch {
		case strings.HasPrefix(line, "---"), strings.HasPrefix(line, "+++"):
			continue
		case strings.HasPrefix(line, "@@"):
			if k, _ := fmt.Sscanf(line, "@@ -%d,%d", &from, &n); k < 2 {
				n = 1
			}
			if n == 0 {
				from++
			}
			for ; next < from-1; next++ {
				out.WriteString(lines[next])
			}
			continue
		}
		for _, piece := range strings.Split(line, "\x00") {
			if piece == "" {
				continue
			}
			if piece[0] != '+' {
				if next >= len(lines) || lines[next] != piece[1:] {
					return "", fmt.Errorf("line %d is not %q", next+1, piece)
				}
				next++
			}
			if piece[0] != '-' {
				out.WriteString(piece[1:])
			}
		}
	}
	for ; next < len(lines); next++ {
		out.WriteString(lines[next])
	}
	return out.String(), nil
}

func TestEveryDiffCanBeApplied(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	text := func(lines, words int) string {
		var b strings.Builder
		for range random.IntN(lines + 1) {
			fmt.Fprintf(&b, "%d\n", random.IntN(words))
		}
		s := b.String()
		if random.IntN(3) == 0 {
			s = strings.TrimSuffix(s, "\n")
		}
		return s
	}
	for i := range 3000 {
		lines, words := 8, 4
		if i%50 == 0 { // long enough for the bounded algorithm
			lines, words = 2*exactLines, 50
		}
		before, after := text(lines, words), text(lines, words)
		diff := unified("f", "f", before, after, 1<<20)
		got, err := patch(before, diff)
		if err != nil || got != after {
			t.Fatalf("before %q\nafter %q\ndiff:\n%s\ngives %q, %v", before, after, diff, got, err)
		}
	}
}

func BenchmarkDiff20000(b *testing.B) {
	text := func(mark func(i int) string) string {
		var s strings.Builder
		for i := range 20000 {
			fmt.Fprintf(&s, "line %d of a text that has some words%s\n", i, mark(i))
		}
		return s.String()
	}
	plain := text(func(int) string { return "" })
	random := rand.New(rand.NewPCG(7, 8))
	for name, other := range map[string]string{
		"one line":    text(func(i int) string { return strings.Repeat("!", max(0, 1+i-10000)*max(0, 10001-i)) }),
		"ends":        text(func(i int) string { return strings.Repeat("!", 1-min(1, i%19999)) }),
		"1 percent":   text(func(i int) string { return strings.Repeat("!", max(0, 1-i%100)) }),
		"every other": text(func(i int) string { return strings.Repeat("!", i%2) }),
		"all":         text(func(int) string { return "!" }),
		"shuffled": func() string {
			lines := strings.SplitAfter(plain, "\n")
			random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
			return strings.Join(lines, "")
		}(),
		"few words": strings.Repeat("a\nb\na\n", 6667),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				unified("f", "f", plain, other, resultDiff)
			}
		})
	}
}
