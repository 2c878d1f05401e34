package redact

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
)

// letters is a text of some length that no service gave out.
func letters(n int) string { return strings.Repeat("aB3dE6gH9jK2", n/12+1)[:n] }

// secrets are one token of each shape.
func secrets() map[string]string {
	jwt := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	return map[string]string{
		"github":    "gh" + "p_" + letters(36),
		"github 2":  "github" + "_pat_" + letters(22) + "_" + letters(59),
		"openai":    "s" + "k-" + letters(48),
		"openai 2":  "s" + "k-proj-" + letters(60) + "_" + letters(30),
		"anthropic": "s" + "k-ant-api03-" + letters(90) + "-AA",
		"aws":       "AK" + "IA" + strings.ToUpper(letters(16)),
		"slack":     "xo" + "xb-123456789012-1234567890123-" + letters(24),
		"gitlab":    "gl" + "pat-" + letters(20),
		"npm":       "np" + "m_" + letters(36),
		"pypi":      "py" + "pi-AgEIcHlwaS5vcmc" + letters(80),
		"google":    "AI" + "za" + letters(35),
		"google 2":  "ya" + "29." + letters(60),
		"stripe":    "s" + "k_live_" + letters(24),
		"jwt":       jwt(`{"alg":"HS256","typ":"JWT"}`) + "." + jwt(`{"sub":"1234567890","name":"x"}`) + "." + letters(43),
		"sendgrid":  "S" + "G." + letters(22) + "." + letters(43),
		"docker":    "dckr" + "_pat_" + letters(27),
		"hex":       "s" + "k-" + strings.Repeat("0a1b2c3d", 4),
		"router":    "s" + "k-or-v1-" + strings.Repeat("0a1b2c3d", 8),
		"groq":      "gs" + "k_" + letters(52),
	}
}

// in are the surroundings of a token.
var in = []string{"%s", "token %s\n", "export TOKEN='%s'; x", `{"a":"\n%s"}`, `{"a":"\u662f%s"}`, "https://user:%s@host/", "a=%s&b", "\x1b[01;31m%s\x1b[m", "x%%3D%s", strings.Repeat("y", 40) + " %s", "line\n%s\nline", "(%s)"}

// pieces masks a text that comes in pieces of a size, as a file is that is written piece by
// piece.
func pieces(text string, size int) string {
	var f Finder
	var file []byte
	for rest := text; rest != ""; {
		n := min(size, len(rest))
		at := len(file)
		found := f.Find([]byte(rest[:n]))
		file = append(file, rest[:n]...)
		for _, s := range found {
			copy(file[at+s.From:], s.Mask())
		}
		rest = rest[n:]
	}
	return string(file)
}

func TestEachShapeIsMaskedWhereverPiecesCutIt(t *testing.T) {
	t.Parallel()
	for name, secret := range secrets() {
		for _, around := range in {
			text := fmt.Sprintf(around, secret)
			for size := 1; size <= len(text); size++ {
				got := pieces(text, size)
				before, after, _ := strings.Cut(text, secret)
				if len(got) != len(text) || !strings.HasPrefix(got, before) || !strings.HasSuffix(got, after) {
					t.Fatalf("%s in pieces of %d: %q became %q", name, size, text, got)
				}
				middle := got[len(before) : len(got)-len(after)]
				for n := 0; n+8 <= len(secret); n++ {
					if strings.Contains(middle, secret[n:n+8]) {
						t.Fatalf("%s in pieces of %d: %q is left in %q", name, size, secret[n:n+8], got)
					}
				}
			}
		}
	}
}

func TestPrivateKeysAreMaskedWhereverPiecesCutThem(t *testing.T) {
	t.Parallel()
	key := must.Get(rsa.GenerateKey(rand.Reader, 2048))(t)
	_, small, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der := must.Get(x509.MarshalPKCS8PrivateKey(small))(t)
	aws := "[default]\naws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\n"
	for name, text := range map[string]string{
		"rsa": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})), "pkcs8": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"aws": aws, "aws in a variable": "AWS_SECRET_ACCESS_KEY=" + strings.Fields(aws)[3] + "\n", "aws in JSON": `{"SecretAccessKey": "` + strings.Fields(aws)[3] + `"}`,
	} {
		quoted := must.Get(json.Marshal("x\n" + text + "y"))(t)
		for _, text := range []string{"a file\n" + text + "the end of internal/journal/chain/record.go\n", string(quoted)} {
			for _, size := range []int{1, 2, 3, 7, 13, 40, 64, 65, 100, 1000, len(text)} {
				got := pieces(text, size)
				for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune("\n\\\" =:,", r) }) {
					if len(line) >= 40 && strings.Contains(got, line[:20]) && !strings.HasPrefix(line, "internal") {
						t.Fatalf("%s in pieces of %d: %q", name, size, got)
					}
				}
				if strings.Contains(text, "the end") && !strings.Contains(got, "the end of internal/journal/chain/record.go\n") {
					t.Fatalf("%s in pieces of %d: what follows was masked: %q", name, size, got)
				}
				if json.Valid([]byte(text)) && !json.Valid([]byte(got)) {
					t.Fatalf("%s in pieces of %d: no JSON any more: %s", name, size, got)
				}
			}
		}
	}
}

func TestOrdinaryTextStaysAsItIs(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"task-management-system-for-everybody-2026", "disk-utilization-PERCENTAGE-of-host-17", "sk-this-is-a-class-of-a-style-sheet", "AKIAB", "the AKIA prefix",
		"go.mod golang.org/x/sys v0.49.0 h1:XbzkgYJHdqh/8m2Uu0W/dQv8nktxx4BFHp1M0gROTXA=", "eyJhIjoxfQ", "commit 93a026fd51373df7e470ee51657c1fa3e0180fd9fd4e5fa7",
		`strings.Contains(x, "-----BEGIN PRIVATE KEY-----")` + "\nreturn internal/journal/chain/record.go", "ghp_short", "snake_case_sk_live_x", "https://example.org/a/b-c_d.e?f=g",
		`-----BEGIN PUBLIC KEY-----` + "\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n",
	} {
		for _, size := range []int{1, 5, len(text)} {
			if got := pieces(text, size); got != text {
				t.Errorf("%q became %q", text, got)
			}
		}
	}
}

func TestJSONStaysJSON(t *testing.T) {
	t.Parallel()
	token := secrets()["github"]
	replace := func(s string) string { return strings.ReplaceAll(s, `pass"word`, "[redacted]") }
	for text, want := range map[string]string{
		`{"a":"` + token + `"}`: "[redacted]***", `{"a":"x\n` + token + `"}`: `x\n[redacted]***`, `{"a":"\u0067` + token[1:] + `"}`: "[redacted]***",
		`{"a":"the pass\"word"}`: `"the [redacted]"`, `{"a":"the pass\u0022word"}`: `"the [redacted]"`, `{"` + token + `":1}`: "[redacted]***", `"\u003c` + token + `"`: "[redacted]***",
		`{"a":"\` + secrets()["npm"] + `"}`: `\n`,
	} {
		got := string(JSON([]byte(text), replace))
		if !json.Valid([]byte(got)) || !strings.Contains(got, want) || strings.Contains(got, token[8:20]) {
			t.Errorf("%s became %s", text, got)
		}
	}
	for _, text := range []string{
		`{"a":"secret_access_key=wJalrXUtnFEMI\/K7MDENG\/bPxRfiCYEXAMPLEKEY"}`, `{"secret_access_key":"wJalrXUtnFEMI\/K7MDENG\u002fbPxRfiCYEXAMPLEKEY"}`,
	} {
		if got := string(JSON([]byte(text), nil)); !json.Valid([]byte(got)) || strings.Contains(got, "K7MDENG") || strings.Contains(got, "EXAMPLE") {
			t.Errorf("%s became %s", text, got)
		}
	}
	for _, text := range []string{`{"a":"https:\/\/example.org\/\u00e9 <b>"}`, `{"a":"b","c":1}`} {
		if got := string(JSON([]byte(text), nil)); got != text {
			t.Errorf("%s became %s", text, got)
		}
	}
	plain := []byte(`{"a":"\u003c\"b"}`)
	if got := JSON(plain, replace); &got[0] != &plain[0] {
		t.Errorf("nothing to mask: %s", got)
	}
	if got := JSON([]byte(`no "JSON `+token), nil); bytes.Contains(got, []byte(token)) {
		t.Errorf("no JSON: %s", got)
	}
}

// FuzzFinder plants a token in a text, and cuts it anywhere.
func FuzzFinder(f *testing.F) {
	f.Add("some text ", " and more", uint8(0), uint8(3))
	f.Add("-----BEGIN PRIVATE KEY-----\nabc", "\\\"", uint8(7), uint8(1))
	f.Add("eyJeyJeyJ.eyJ sk-sk-sk- ", "xoxb-", uint8(2), uint8(9))
	var all []string
	for _, s := range secrets() {
		all = append(all, s)
	}
	f.Fuzz(func(t *testing.T, before, after string, which, size uint8) {
		secret := all[int(which)%len(all)]
		text := before + " " + secret + " " + after
		got := pieces(text, int(size)+1)
		if len(got) != len(text) || strings.Contains(got, secret[8:]) {
			t.Fatalf("%q in pieces of %d became %q", text, int(size)+1, got)
		}
		for i := range len(text) {
			if got[i] != text[i] && !strings.ContainsRune("[redacted]*", rune(got[i])) {
				t.Fatalf("byte %d of %q became %q", i, text, got)
			}
		}
		for _, replace := range []func(string) string{nil, func(s string) string { return s }} {
			quoted := must.Get(json.Marshal(map[string]string{"a": text, before: after}))(t)
			if out := JSON(quoted, replace); !json.Valid(out) || bytes.Contains(out, []byte(secret[8:])) {
				t.Fatalf("%s became %s", quoted, out)
			}
		}
		JSON([]byte(before), nil)
	})
}

// BenchmarkFinder is the search of a MiB in pieces of 32 KiB, of several kinds.
func BenchmarkFinder(b *testing.B) {
	random := make([]byte, 1<<20)
	_, _ = rand.Read(random)
	fill := func(s string) []byte { return []byte(strings.Repeat(s, 1<<20/len(s)+1)[:1<<20]) }
	for name, text := range map[string][]byte{
		"log":      fill("2026-11-23T09:13:17Z info server: GET /v1/messages?limit=100 took 13ms status=200\n"),
		"source":   fill("	if err := json.Unmarshal(arguments, &a); err != nil { return fmt.Errorf(\"cannot read: %w\", err) }\n"),
		"base64":   []byte(base64.StdEncoding.EncodeToString(random))[:1<<20],
		"hex":      []byte(fmt.Sprintf("%x", random))[:1<<20],
		"hostile":  fill("eyJsk-AKIA"),
		"hostile2": fill("sk-"),
		"hostile3": fill("PRIVATE KEY ecret_access_key "),
		"hostile4": fill(" ghp_123456789 -----EN"),
		"secrets":  fill("token " + secrets()["github"] + "\n"),
		"binary":   random,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(1 << 20)
			for b.Loop() {
				var f Finder
				for i := 0; i < len(text); i += 32 << 10 {
					f.Find(text[i : i+32<<10])
				}
			}
		})
	}
}
