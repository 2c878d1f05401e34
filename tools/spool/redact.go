package spool

import (
	"bytes"
	"slices"
	"strings"
)

const redacted = "[redacted]"

// Redact replaces every secret by "[redacted]", also the start of one before a mark of omission.
func Redact(text string, secrets []string) string {
	r := newRedactor(secrets)
	return r.text(text)
}

// Replacer returns Redact with these secrets; nil if there are none.
func Replacer(secrets []string) func(text string) string {
	r := newRedactor(secrets)
	if len(r.secrets) == 0 {
		return nil
	}
	return func(text string) string {
		r := r // a redactor has state
		return r.text(text)
	}
}

// redactor replaces secrets in one stream, also across writes.
type redactor struct {
	secrets [][]byte // longest first
	first   [256]bool
	held    []byte // input that may begin a secret
}

// alone is the length from which a line of a secret is itself redacted: tools print lines
// separately.
const alone = 16

func newRedactor(secrets []string) redactor {
	var r redactor
	for _, s := range secrets {
		s = strings.TrimRight(s, "\r\n") // YAML ends a block with one
		for line := range strings.SplitSeq(s, "\n") {
			line = strings.TrimSuffix(line, "\r")
			if s != "" && (len(line) == len(s) || len(line) >= alone) {
				r.add(line)
			}
		}
		if strings.Contains(s, "\n") {
			r.add(s)
		}
	}
	slices.SortFunc(r.secrets, func(a, b []byte) int { return len(b) - len(a) })
	return r
}

func (r *redactor) add(secret string) {
	r.secrets = append(r.secrets, []byte(secret))
	r.first[secret[0]] = true
}

const (
	omission = "…"
	least    = 4 // minimum length of the start of a secret
)

func (r *redactor) text(text string) string {
	if len(r.secrets) == 0 {
		return text
	}
	pieces := strings.SplitAfter(string(r.pass([]byte(text), true)), omission)
	for i, p := range pieces[:len(pieces)-1] {
		shown := strings.TrimRight(strings.TrimSuffix(p, omission), " [\"")
		if n := r.begun(shown); n >= least {
			pieces[i] = shown[:len(shown)-n] + redacted + p[len(shown):]
		}
	}
	return strings.Join(pieces, "")
}

func (r *redactor) begun(text string) (most int) {
	for _, s := range r.secrets {
		for n := min(len(s)-1, len(text)); n > most; n-- {
			if strings.HasSuffix(text, string(s[:n])) {
				most = n
			}
		}
	}
	return most
}

// pass returns the redacted output after input p, perhaps p itself. last ends the input.
func (r *redactor) pass(p []byte, last bool) []byte {
	if len(r.secrets) == 0 {
		return p
	}
	in := append(r.held, p...)
	r.held = nil
	out := make([]byte, 0, len(in))
	for i := 0; i < len(in); {
		plain := i
		for i < len(in) && !r.first[in[i]] {
			i++
		}
		out = append(out, in[plain:i]...)
		if i == len(in) {
			break
		}
		secret, partial := r.match(in[i:])
		switch {
		case partial && !last:
			r.held = bytes.Clone(in[i:])
			return out
		case secret != nil:
			out = append(out, redacted...)
			i += len(secret)
		default:
			out = append(out, in[i])
			i++
		}
	}
	return out
}

// match returns the longest secret at the start of p. partial: p may be the start of a longer one.
func (r *redactor) match(p []byte) (secret []byte, partial bool) {
	for _, s := range r.secrets {
		switch {
		case s[0] != p[0]:
		case len(p) < len(s):
			partial = partial || bytes.HasPrefix(s, p)
		case secret == nil && bytes.HasPrefix(p, s):
			secret = s
		}
	}
	return secret, partial
}
