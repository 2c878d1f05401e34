package redact

import (
	"bytes"
	"strings"
	"sync"
)

type shape struct {
	prefix string            // in shapes: several, separated by spaces
	least  int               // minimum length after the prefix
	apart  bool              // no letter or digit may precede, because words contain the prefix
	is     func([]byte) bool // additional condition; may be nil
}

// fits reports whether a text may follow the prefix in a token.
func (h *shape) fits(rest []byte) bool {
	return len(rest) >= h.least && (h.is == nil || h.is(rest))
}

var shapes = []shape{
	{"ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", 20, false, nil},            // GitHub
	{"glpat- gldt- glrt- glptt- glcbt- glsoat-", 16, false, nil},        // GitLab
	{"sk-", 20, true, mixed},                                            // OpenAI, Anthropic (sk-ant-) and others
	{"sk-", 32, true, hex},                                              // DeepSeek
	{"sk-or-v1-", 40, true, nil},                                        // OpenRouter
	{"gsk_ nvapi-", 40, true, mixed},                                    // Groq, NVIDIA
	{"xai-", 60, true, mixed},                                           // xAI
	{"AKIA ASIA", 16, true, upper},                                      // AWS; its secret key is found by name
	{"xoxb- xoxp- xoxa- xoxr- xoxs- xoxe- xoxe. xapp-", 12, false, nil}, // Slack
	{"npm_ pypi-AgE", 30, false, nil},                                   // npm, PyPI
	{"dckr_pat_", 20, false, nil},                                       // Docker
	{"AIza", 30, true, nil},                                             // Google
	{"ya29.", 20, true, nil},                                            // Google
	{"GOCSPX-", 20, false, nil},                                         // Google
	{"sk_live_ rk_live_ sk_test_ rk_test_ whsec_", 16, false, nil},      // Stripe
	{"eyJ", 30, true, nil},                                              // JSON Web Tokens; see search.run
	{"SG.", 40, true, nil},                                              // SendGrid
	{"hf_", 30, true, nil},                                              // Hugging Face
	{"dop_v1_", 40, false, nil},                                         // DigitalOcean
	{"hvs.", 24, true, nil},                                             // Vault
	{"shpat_ glsa_ lin_api_", 30, false, nil},                           // Shopify, Grafana, Linear
	{"AGE-SECRET-KEY-1", 40, false, nil},
}

// stride is the minimum length of a token: the search examines every stride-th byte until it finds a run.
const stride = 16

// lookup contains tables by byte.
type lookup struct {
	word, digit, alnum [256]bool     // bytes of tokens, base64 and words
	begin              [1 << 16]bool // first two bytes of shapes
	byFirst            [256][]shape
}

var tables = sync.OnceValue(func() *lookup {
	const alnum = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	t := &lookup{word: class(alnum + "_-."), digit: class(alnum + "+/"), alnum: class(alnum)}
	for _, s := range shapes {
		for _, s.prefix = range strings.Fields(s.prefix) {
			c := s.prefix[0]
			t.begin[int(c)<<8|int(s.prefix[1])], t.byFirst[c] = true, append(t.byFirst[c], s)
		}
	}
	return t
})

func class(members string) (c [256]bool) {
	for i := range len(members) {
		c[members[i]] = true
	}
	return c
}

const (
	longestPrefix = 16
	longestHeader = 1 << 10 // of an incomplete JSON Web Token
)

func (s *search) tokens() {
	p, word := s.p, &s.word
	for i := 0; i < len(p); {
		j := min(i+stride, len(p)) - 1
		if !word[p[j]] {
			i = j + 1
			continue
		}
		a, b := j, j+1
		for a > i && word[p[a-1]] {
			a--
		}
		for b < len(p) && word[p[b]] {
			b++
		}
		if b-a >= stride || b == len(p) {
			s.run(a, b)
		}
		i = b
	}
}

// run finds a token in a run, which then extends to the end of the run.
func (s *search) run(a, b int) {
	p := s.p
	unclaimed := b // there is no .eyJ from here on
	for k := a; k+1 < b; k++ {
		if !s.begin[int(p[k])<<8|int(p[k+1])] {
			continue
		}
		for i := range s.byFirst[p[k]] {
			switch h := &s.byFirst[p[k]][i]; {
			case !bytes.HasPrefix(p[k:b], []byte(h.prefix)), h.apart && !s.apart(k):
			case h.prefix == "eyJ" && (k+stride >= unclaimed || !bytes.Contains(p[k+stride:b], []byte(".eyJ"))):
				if unclaimed = min(unclaimed, k); b == len(p) && b-k < longestHeader {
					s.hold(k)
				}
			case !h.fits(p[k+len(h.prefix) : b]):
				if b == len(p) && b-k < mixedWithin {
					s.hold(k)
				}
			default:
				s.add(k, b, &s.word)
				return
			}
		}
	}
	if b == len(p) { // a prefix may be cut off
		s.hold(max(a, b-longestPrefix))
	}
}

// apart reports whether no word precedes k. The end of an escape is no word: \n, \u662f, %3D and terminal colours.
func (s *search) apart(k int) bool {
	last, second := s.at(k-1), s.at(k-2)
	switch {
	case !s.alnum[last], second == '\\', s.at(k-3) == '%', s.at(k-5) == 'u' && s.at(k-6) == '\\':
		return true
	}
	endsColour := second == '[' || '0' <= second && second <= '9'
	return last == 'm' && endsColour
}

const mixedWithin = 64 // bytes that mixed examines, including the prefix

// mixed reports whether a text has digits and capitals, unlike names that people choose.
func mixed(p []byte) bool {
	digit, capital := false, false
	for _, c := range p[:min(len(p), mixedWithin-len("sk-"))] {
		digit = digit || '0' <= c && c <= '9'
		capital = capital || 'A' <= c && c <= 'Z'
	}
	return digit && capital
}

func hex(p []byte) bool { return len(bytes.TrimLeft(p[:32], "0123456789abcdef")) == 0 }

func upper(p []byte) bool {
	return len(bytes.TrimLeft(p[:16], "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")) == 0
}
