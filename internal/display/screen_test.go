package display

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/toold/toold/internal/must"
)

func screened(t testing.TB, pieces ...string) string {
	t.Helper()
	var to bytes.Buffer
	s := NewScreen(&to)
	for _, p := range pieces {
		if n, err := s.Write([]byte(p)); n != len(p) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	must.Do(t, s.Close())
	return to.String()
}

func TestScreenLetsATerminalObeyNothingButColours(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain\ttext\né 日本 😀 עברית\n":                            "plain\ttext\né 日本 😀 עברית\n",
		"\x1b[1;31mred\x1b[m\x1b[38:5:1mx":                       "\x1b[1;31mred\x1b[m\x1b[38:5:1mx\x1b[0m",
		"\x1b]52;c;cm0gLXJmIH4=\ax":                              "x",
		"\x1b]0;title\x1b\\x":                                    "x",
		"\x1b]8;;http://x\x1b\\link\x1b]8;;":                     "link",
		"\x1bPq#0\x1b\\a\x1b_b\x1b\\c\x1b^d\x1b\\e\x1bXf\x1b\\g": "aceg",
		"a\x1b[2J\x1b[H\x1b[3Ab\x1b[?1049h\x1b[6n":               "ab",
		"\x1b[>4;2m\x1b[?1m\x1b[1 mx":                            "x",
		"\x1bc\x1b(0\x1b#8\x1b=\x1b7x":                           "x",
		"\u009b2J\u009d0;t\u009cx":                               "⟨U+009B⟩2J⟨U+009D⟩0;t⟨U+009C⟩x",
		"\x9b2Jx\x85\xff":                                        "\ufffd2Jx\ufffd\ufffd",
		"\xe3\x81":                                               "\ufffd",
		"\xe3a\xe3\x1b[2Jb":                                      "\ufffda\ufffdb",
		"bell\a back\b nul\x00 enq\x05 del\x7f":                  "bell back nul^@ enq^E del^?",
		"10%\r100%\rdone\r\n":                                    "10%\r\x1b[K100%\r\x1b[Kdone\n",
		"10%\x1b[1G\x1b[0K20%\x1b[G30%\x1b[2Kdone\n":             "10%\r\x1b[K20%\r\x1b[K30%\r\x1b[Kdone\n",
		"a\x1b[Kb\x1b[2Gc\x1b[1D-\x1b[999Dd\n":                   "abc-\r\x1b[Kd\n",
		"never ends \x1b]0;title\nnext":                          "never ends \nnext",
		"never ends \x1b[31\nnext":                               "never ends \nnext",
		"\x1b]0;t\x1b[31mred":                                    "\x1b[31mred\x1b[0m",
		"\x1b\x1b[31mx\x1b[\x1b[32my":                            "\x1b[31mx\x1b[32my\x1b[0m",
		"\x1b[" + strings.Repeat("1;", 100) + "mx":               "x",
		"\x1b[3\x01 1mx":                                         "^A 1mx",
	} {
		if got := screened(t, in); got != want {
			t.Errorf("of %q comes %q, want %q", in, got, want)
		}
		if got := screened(t, strings.SplitAfter(in, "")...); got != want && utf8.ValidString(in) {
			t.Errorf("of %q in pieces comes %q, want %q", in, got, want)
		}
	}
}

func TestNoPartOfALongLineLooksLikeALineOfItsOwn(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"0123456789abcdefghij":       "0123456789abcdef\x1b[0m\n    | ghij",
		"0123456789abcdef\nx":        "0123456789abcdef\nx",
		"\x1b[8m0123456789abcdef\n":  "\x1b[8m0123456789abcdef\n\x1b[0m",
		"日本語日本語日本語":                  "日本語日本語日本\x1b[0m\n    | 語",
		"\t\tx":                      "\t\t\x1b[0m\n    | x",
		"0123456789abcde\x01":        "0123456789abcde\x1b[0m\n    | ^A",
		"0123456789abcdef\r012345\n": "0123456789abcdef\r\x1b[K012345\n",
	} {
		var to bytes.Buffer
		s := NewScreen(&to)
		s.Width = 16
		_, err := s.Write([]byte(in))
		if err2 := s.Close(); err != nil || err2 != nil || to.String() != want {
			t.Errorf("of %q comes %q, want %q (%v, %v)", in, to.String(), want, err, err2)
		}
	}
}

// harmless are the sequences that a Screen writes.
var harmless = regexp.MustCompile("\x1b\\[[0-9;:]*m|\r\x1b\\[K")

func FuzzScreen(f *testing.F) {
	f.Add([]byte("a\rb\b\x1b[31mc\x1b]0;t\a\xff\r\n\xc2\x9b2J"), 3)
	f.Add([]byte("\x1b[31\x1b]\x1b\\m\xe3\x81\x1b[0m"), 1)
	f.Fuzz(func(t *testing.T, in []byte, at int) {
		at = min(max(at, 0), len(in))
		out := screened(t, string(in))
		if got := screened(t, string(in[:at]), string(in[at:])); got != out {
			t.Fatalf("cut at %d it is %q, whole %q", at, got, out)
		}
		if !utf8.ValidString(out) {
			t.Fatalf("%q is not UTF-8", out)
		}
		rest := harmless.ReplaceAllString(out, "")
		if i := strings.IndexFunc(rest, func(r rune) bool { return r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 }); i >= 0 {
			t.Fatalf("a control character is left in %q", out)
		}
		if strings.Count(out, "\n") != bytes.Count(in, []byte("\n")) {
			t.Fatalf("lines of %q are missing in %q", in, out)
		}
	})
}

func TestMarkShowsWhatIsHiddenAndKeepsWhatIsNeeded(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain":                             "plain",
		"if access\u202e {\u2066 ok":        "if access⟨U+202E⟩ {⟨U+2066⟩ ok",
		"pass\u200bword \u2060\u00ad\u180e": "pass⟨U+200B⟩word ⟨U+2060⟩⟨U+00AD⟩⟨U+180E⟩",
		"\U000e0069\U000e0067n\U000e0001":   "⟨U+E0069⟩⟨U+E0067⟩n⟨U+E0001⟩",
		"a\ufe0fb\U000e0100 \u3164\u034f":   "a⟨U+FE0F⟩b⟨U+E0100⟩ ⟨U+3164⟩⟨U+034F⟩",
		"👩\u200d👩\u200d👧 ❤\ufe0f 1\ufe0f\u20e3 👍🏽\u200d♂\ufe0f": "👩\u200d👩\u200d👧 ❤\ufe0f 1\ufe0f\u20e3 👍🏽\u200d♂\ufe0f",
		"❤\ufe0f\ufe0f\ufe0f":          "❤\ufe0f⟨U+FE0F⟩⟨U+FE0F⟩",
		"a\u200db\u200cc":              "a⟨U+200D⟩b⟨U+200C⟩c",
		"می\u200cخواهم क\u094d\u200dष": "می\u200cخواهم क\u094d\u200dष",
		"שלום\u200f, world\u200e x":    "שלום\u200f, world⟨U+200E⟩ x",
		"\ufeffbom \ufeff":             "\ufeffbom ⟨U+FEFF⟩",
		"\u0600\u0661 \xff\ufffd":      "\u0600\u0661 \xff\ufffd",
	} {
		if got := Mark(in); got != want {
			t.Errorf("Mark(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzMark(f *testing.F) {
	f.Add("a\u202eb\u200d👩\u200d👧 \U000e0041\xff")
	f.Fuzz(func(t *testing.T, in string) {
		in = strings.ToValidUTF8(in, "?") // else what is left out joins bytes
		out := Mark(in)
		for _, r := range "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b\u2060\U000e0041\U000e0100" {
			if strings.ContainsRune(out, r) {
				t.Fatalf("%q is left in %q", r, out)
			}
		}
		back := regexp.MustCompile(`⟨U\+[0-9A-F]+⟩`).ReplaceAllString(out, "")
		kept := strings.Map(func(r rune) rune {
			if isInvisible(r) {
				return -1
			}
			return r
		}, back)
		if want := strings.Map(func(r rune) rune {
			if isInvisible(r) {
				return -1
			}
			return r
		}, regexp.MustCompile(`⟨U\+[0-9A-F]+⟩`).ReplaceAllString(in, "")); kept != want {
			t.Fatalf("of %q is left %q, want %q", in, kept, want)
		}
		if Mark(out) != out {
			t.Fatalf("%q marked again is %q", out, Mark(out))
		}
	})
}
