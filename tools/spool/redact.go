package spool

import (
	"bytes"
	"slices"
)

const redacted = "[redacted]"

// Redact returns text with every secret replaced by "[redacted]". The longest match
// counts.
func Redact(text string, secrets []string) string {
	r := newRedactor(secrets)
	return string(r.pass([]byte(text), true))
}

// Replacer returns what Redact does with these secrets; nil when there are none.
func Replacer(secrets []string) func(text string) string {
	r := newRedactor(secrets)
	if len(r.secrets) == 0 {
		return nil
	}
	return func(text string) string {
		r := r // has a state
		return string(r.pass([]byte(text), true))
	}
}

// redactor replaces secrets in one stream, also across writes.
type redactor struct {
	secrets [][]byte  // longest first
	first   [256]bool // first bytes of secrets
	held    []byte    // the end of the input, while it may begin a secret
}

func newRedactor(secrets []string) redactor {
	var r redactor
	for _, s := range secrets {
		if s != "" {
			r.secrets = append(r.secrets, []byte(s))
			r.first[s[0]] = true
		}
	}
	slices.SortFunc(r.secrets, func(a, b []byte) int { return len(b) - len(a) })
	return r
}

// pass returns the redacted output after input p; last ends the input. The result may be
// p itself.
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

// match returns the longest secret at the start of p, and whether p may be the start of a
// longer one.
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
