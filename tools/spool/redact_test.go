package spool

import (
	"regexp"
	"strings"
	"testing"
)

// FuzzRedact verifies that it makes no difference where writes cut the output.
func FuzzRedact(f *testing.F) {
	f.Add("x abab abc ab", "ab", "abc", "bab", 1)
	f.Add("aaaa", "aa", "aaa", "", 3)
	f.Add("a\x1b[1;31mb\x1b[m\x1b[Kab a\x1b[1\x01b", "ab", "aba", "", 2)
	sequence := regexp.MustCompile(`^\x1b\[[ -?]*[@-~]`)
	f.Fuzz(func(t *testing.T, in, one, two, three string, size int) {
		if size < 1 {
			t.Skip()
		}
		secrets := []string{one, two, three}
		for i, s := range secrets {
			secrets[i] = strings.TrimRight(s, "\r\n")
			if strings.Contains(s, "\x1b") {
				t.Skip() // what the expression below means by it is another thing
			}
		}
		r := newRedactor(secrets)
		var got strings.Builder
		for rest := in; rest != ""; {
			n := min(size, len(rest))
			got.Write(r.pass([]byte(rest[:n]), false))
			rest = rest[n:]
		}
		got.Write(r.pass(nil, true))

		var want strings.Builder
		for rest := in; rest != ""; {
			longest, size := "", 0
			for _, s := range secrets {
				if n := coloured(sequence, rest, s); len(s) > len(longest) && n > 0 {
					longest, size = s, n
				}
			}
			if longest == "" {
				want.WriteByte(rest[0])
				rest = rest[1:]
				continue
			}
			want.WriteString(redacted)
			rest = rest[size:]
		}
		if got.String() != want.String() {
			t.Fatalf("%q without %q in pieces of %d: %q, want %q", in, secrets, size, got.String(), want.String())
		}
	})
}

// coloured returns the length of a secret at the start of a text, with control sequences in it; 0 if there is none.
func coloured(sequence *regexp.Regexp, text, secret string) (n int) {
	skipped := 0
	for i := range len(secret) {
		for found := sequence.FindString(text[n:]); i > 0 && found != ""; found = sequence.FindString(text[n:]) {
			n, skipped = n+len(found), skipped+len(found)
		}
		if n == len(text) || text[n] != secret[i] || skipped > 256 {
			return 0
		}
		n++
	}
	return n
}

func TestTheLongerOfTwoSecretsIsRedacted(t *testing.T) {
	t.Parallel()
	if got := Redact("pass password passwor", []string{"pass", "password"}); got != "[redacted] [redacted] [redacted]wor" {
		t.Errorf("got %q", got)
	}
}

// YAML ends a block (|) with a newline, which a program that prints the secret need not.
func TestASecretIsRedactedWithoutTheNewlineAtItsEnd(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"\n", "\r\n", "\n\n"} {
		for text, want := range map[string]string{"is hunter2.": "is [redacted].", "hunter2" + end + "next": "[redacted]" + end + "next", end: end} {
			if got := Redact(text, []string{"hunter2" + end, end}); got != want {
				t.Errorf("%q became %q, want %q", text, got, want)
			}
		}
		const line = "a line that is long enough"
		if got := Redact("<"+line+">", []string{line + end + "more" + end}); got != "<[redacted]>" {
			t.Errorf("of two lines: %q", got)
		}
	}
}

// What a tool shows of a text that it cuts has the beginning of a secret before the mark.
func TestTheBeginningOfASecretThatWasCutIsRedacted(t *testing.T) {
	t.Parallel()
	const secret = "correct-horse"
	for _, mark := range []string{"…", " [… 5 more bytes of line 1 …]\n", `"… and more`, " …"} {
		for n := range len(secret) {
			want := "a " + secret[:n] + mark
			if n >= 4 {
				want = "a [redacted]" + mark
			}
			text := "a " + secret[:n] + mark
			if got := Redact(text, []string{"other", secret}); got != want {
				t.Errorf("%q became %q, want %q", text, got, want)
			}
			if got := Replacer([]string{secret})(text + text); strings.Contains(got, "corr") && n >= 4 {
				t.Errorf("%q became %q", text+text, got)
			}
		}
	}
	for _, text := range []string{"the corr of it", "corr", "corr \n…", "…corr", "… [corr"} {
		if got := Redact(text, []string{secret}); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// Tools number lines, mark them and show some of them.
func TestALineOfASecretIsRedacted(t *testing.T) {
	t.Parallel()
	secret := "first line of it\nno\nthe last line of it"
	for text, want := range map[string]string{
		"a " + secret + " b":                    "a [redacted] b",
		"  1\tfirst line of it\n  2\tno\n":      "  1\t[redacted]\n  2\tno\n",
		"-the last line of it\n+":               "-[redacted]\n+",
		"the last li […] the last line of it …": "[redacted] […] [redacted] …",
	} {
		if got := Redact(text, []string{secret}); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
