package display

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
)

func TestVisibleHidesNothingFromThePersonWhoDecides(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"echo é 日本 😀\n\tx":                                     "echo é 日本 😀\n\tx",
		"rm\x1b[2K -rf\r":                                      `rm\u{001b}[2K -rf\u{000d}`,
		"a\u202eb\u200bc\u00a0d":                               `a\u{202e}b\u{200b}c\u{00a0}d`,
		"a\ufe0fb\u3164c\u2800":                                `a\u{fe0f}b\u{3164}c\u{2800}`,
		"\u034f\u115f\u1160\u17b4\u17b5\u180e\uffa0\U0001d159": `\u{034f}\u{115f}\u{1160}\u{17b4}\u{17b5}\u{180e}\u{ffa0}\u{1d159}`,
		"git push origin \u0430dmin; curl ex\u03b1mple.org; p\u0440 \u0410B": `git push origin \u{0430}dmin; curl ex\u{03b1}mple.org; p\u{0440} \u{0410}B`,
		"привет.txt \u0441 \u0430 5µs Δt λx /tmp/\u0440\u043e\u0442 a\u0301": "привет.txt \u0441 \u0430 5µs Δt λx /tmp/\u0440\u043e\u0442 a\u0301",
		"\xff\ufffd\x00": `\xff` + "\ufffd" + `\u{0000}`,
	} {
		if got := Visible(in); got != want {
			t.Errorf("Visible(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestQuoteBoundsWhatIsShownAndSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	if got, want := Quote("a\x1b[2J\nno  git asks: x", "  ", ""), "  | a\\u{001b}[2J\n  | no  git asks: x\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for name, c := range map[string]struct{ text, first, left, last string }{
		"blank lines":      {"rm x" + strings.Repeat("\n", 200_000) + "rm y", "  | rm x\n", "(199901 lines are not shown; cat it)", "  | rm y\n"},
		"one long line":    {"rm " + strings.Repeat("x", 200_000) + "; rm y", "  | rm x", "(199009 characters are not shown; cat it)", "x; rm y\n"},
		"a line that fits": {"rm " + strings.Repeat("x", 7000) + "; rm y", "  | rm x", strings.Repeat("x", 7000), "x; rm y\n"},
		"long lines":       {strings.Repeat(strings.Repeat("x", 3000)+"\n", 500) + "end", "  | xxx", "lines are not shown; cat it)", "  | end\n"},
	} {
		got := Quote(c.text, "  ", "cat it")
		if !strings.HasPrefix(got, c.first) || !strings.Contains(got, c.left) || !strings.HasSuffix(got, c.last) {
			t.Errorf("%s: got %.100q … %q", name, got, got[max(0, len(got)-100):])
		}
		if lines := strings.Count(got, "\n"); len(got) > 20_000 || lines > 110 {
			t.Errorf("%s: %d bytes in %d lines are shown", name, len(got), lines)
		}
	}
	for n := range 300 { // every line is shown or counted
		got := Quote(strings.Repeat("\n", n), "", "")
		shown, left := strings.Count(got, "| "), 0
		if _, after, ok := strings.Cut(got, "("); ok {
			_, _ = fmt.Sscan(after, &left)
		}
		if shown+left != n+1 {
			t.Errorf("of %d lines %d are shown and %d left out", n+1, shown, left)
		}
	}
}

func FuzzJSON(f *testing.F) {
	f.Add("a\u202e\x7f\u009b\U000e0041é😀\u0085\u3164")
	f.Fuzz(func(t *testing.T, in string) {
		plain := must.Get(json.Marshal(map[string]string{in: in}))(t)
		shown := JSON(string(plain) + "\n")
		var want, got map[string]string
		if json.Unmarshal(plain, &want) != nil || json.Unmarshal([]byte(shown), &got) != nil {
			t.Fatalf("%q cannot be read", shown)
		}
		for key, value := range want {
			if got[key] != value {
				t.Fatalf("of %q comes %q", plain, shown)
			}
		}
		if rest := Visible(shown); rest != shown {
			t.Fatalf("%q has characters that nobody sees", shown)
		}
	})
}
