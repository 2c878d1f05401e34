package redact

import (
	"fmt"
	"strings"
	"testing"
)

// remains is what masking leaves of a secret in a text: so many bytes in a row.
func remains(text, secret string) string {
	const most = 8
	masked := string(Mask([]byte(text)))
	for n := 0; n+most <= len(secret); n++ {
		if strings.Contains(masked, secret[n:n+most]) {
			return secret[n : n+most]
		}
	}
	return ""
}

func TestASecretThatIsCutLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, secret := range secrets() {
		for _, around := range in {
			text := fmt.Sprintf(around, secret)
			at := strings.Index(text, secret)
			for cut := at; cut <= at+len(secret); cut++ {
				head, tail := Part([]byte(text), 0, cut), Part([]byte(text), cut, len(text))
				middle := Part([]byte(text), min(cut, len(text)), min(cut+20, len(text)))
				for _, got := range []string{string(head) + "\n[… cut …]\n" + string(tail), string(middle), Beginning(text, cut) + "…"} {
					if left := remains(got, secret); left != "" {
						t.Fatalf("%s cut at %d of %q: %q is left in %q", name, cut-at, text, left, got)
					}
				}
				if len(head) != cut || len(tail) != len(text)-cut {
					t.Fatalf("%s cut at %d of %q: %q, %q", name, cut-at, text, head, tail)
				}
			}
		}
	}
}

func TestALineOfAKeyIsMaskedWithoutTheOneThatNamesIt(t *testing.T) {
	t.Parallel()
	digits := letters(64)
	text := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat(digits+"\n", 20) + "-----END PRIVATE KEY-----\nthe end\n"
	for from := 1; from < len(text); from++ {
		got := string(Part([]byte(text), from, len(text)))
		if left := remains(got, digits); left != "" || !strings.HasSuffix("\nthe end\n", got[max(0, len(got)-len("\nthe end\n")):]) {
			t.Fatalf("from %d on: %q is left in %q", from, left, got)
		}
	}
}

func TestAPartWithoutACutSecretStaysAsItIs(t *testing.T) {
	t.Parallel()
	text := "one " + secrets()["github"] + " two " + letters(100) + " three"
	for _, part := range [][2]int{{0, len(text)}, {0, 60}, {2, 80}, {60, 70}} {
		if got := string(Part([]byte(text), part[0], part[1])); got != text[part[0]:part[1]] {
			t.Errorf("%v: %q", part, got)
		}
	}
}
