package spool

import (
	"bytes"
	"slices"
	"strings"
)

const redacted = "[redacted]"

// Redact replaces every secret with "[redacted]", even the beginning of one before "…".
func Redact(text string, secrets []string) string {
	r := newRedactor(secrets)
	return r.text(text)
}

// Replacer returns a function that is Redact with these secrets, or nil if there are none.
func Replacer(secrets []string) func(text string) string {
	r := newRedactor(secrets)
	if len(r.secrets) == 0 {
		return nil
	}
	return func(text string) string {
		r := r // a copy, because a redactor has state
		return r.text(text)
	}
}

// redactor replaces the secrets in one stream, even if a secret is split across writes.
type redactor struct {
	secrets [][]byte // longest first
	first   [256]bool
	held    []byte // input that may be the beginning of a secret
}

// alone is the length from which a line of a secret is redacted by itself, because tools print single lines.
const alone = 16

func newRedactor(secrets []string) redactor {
	var r redactor
	for _, s := range secrets {
		s = strings.TrimRight(s, "\r\n") // a YAML block ends with one
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
	least    = 4 // minimum length of the beginning of a secret
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

// pass returns the redacted output for input p; it may be p itself. last marks the end of input.
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
		n, partial := r.match(in[i:])
		switch {
		case partial && !last:
			r.held = bytes.Clone(in[i:])
			return out
		case n > 0:
			out = append(out, redacted...)
			i += n
		default:
			out = append(out, in[i])
			i++
		}
	}
	return out
}

// match returns the length of the longest secret at the beginning of p, as written there. partial means that p may be
// the beginning of a longer one.
func (r *redactor) match(p []byte) (n int, partial bool) {
	for _, s := range r.secrets {
		end, cut := written(s, p)
		partial = partial || cut
		if n == 0 {
			n = end
		}
	}
	return n, partial
}

// mostColour limits the bytes of escape sequences within a secret.
const mostColour = 256

// written returns the length of a secret at the beginning of p. Control sequences (ECMA-48, 5.4) may be between its
// bytes, because git grep colours matches. cut means that p ends within the secret.
func written(secret, p []byte) (length int, cut bool) {
	left := mostColour
	for n := 0; n < len(secret); {
		if length == len(p) {
			return 0, true
		}
		if p[length] == secret[n] {
			length, n = length+1, n+1
			continue
		}
		size, whole := control(p[length:])
		switch {
		case n == 0, size == 0, size > left:
			return 0, false
		case !whole:
			return 0, true
		}
		length, left = length+size, left-size
	}
	return length, false
}

// control returns the length of the control sequence at the beginning of p, or 0. whole means that p contains its end.
func control(p []byte) (n int, whole bool) {
	if p[0] != 0x1b || len(p) > 1 && p[1] != '[' {
		return 0, false
	}
	n = min(2, len(p))
	for n < len(p) && p[n] >= 0x20 && p[n] <= 0x3f { // parameters
		n++
	}
	switch {
	case n == len(p):
		return n, false
	case p[n] < 0x40 || p[n] > 0x7e:
		return 0, false
	}
	return n + 1, true
}
