package spool

import (
	"strings"
	"testing"
)

// FuzzRedact verifies that it makes no difference where writes cut the output.
func FuzzRedact(f *testing.F) {
	f.Add("x abab abc ab", "ab", "abc", "bab", 1)
	f.Add("aaaa", "aa", "aaa", "", 3)
	f.Fuzz(func(t *testing.T, in, one, two, three string, size int) {
		if size < 1 {
			t.Skip()
		}
		secrets := []string{one, two, three}
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
			longest := ""
			for _, s := range secrets {
				if len(s) > len(longest) && strings.HasPrefix(rest, s) {
					longest = s
				}
			}
			if longest == "" {
				want.WriteByte(rest[0])
				rest = rest[1:]
				continue
			}
			want.WriteString(redacted)
			rest = rest[len(longest):]
		}
		if got.String() != want.String() {
			t.Fatalf("%q without %q in pieces of %d: %q, want %q", in, secrets, size, got.String(), want.String())
		}
	})
}

func TestTheLongerOfTwoSecretsIsRedacted(t *testing.T) {
	t.Parallel()
	if got := Redact("pass password passwor", []string{"pass", "password"}); got != "[redacted] [redacted] [redacted]wor" {
		t.Errorf("got %q", got)
	}
}
