package display

import "testing"

func TestVisibleHidesNothingFromThePersonWhoDecides(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"echo é 日本 😀\n\tx":       "echo é 日本 😀\n\tx",
		"rm\x1b[2K -rf\r":        `rm\u{001b}[2K -rf\u{000d}`,
		"a\u202eb\u200bc\u00a0d": `a\u{202e}b\u{200b}c\u{00a0}d`,
		"a\ufe0fb\u3164c\u2800":  `a\u{fe0f}b\u{3164}c\u{2800}`,
		"\xff\ufffd\x00":         `\xff` + "\ufffd" + `\u{0000}`,
	} {
		if got := Visible(in); got != want {
			t.Errorf("Visible(%q) = %q, want %q", in, got, want)
		}
	}
}
