// Package redact finds secrets of known shapes, such as service tokens and private keys, and masks them without
// changing the length. It recognises a prefix and the characters that follow. So it misses passwords and unknown
// services, and may mask similar text. It takes linear time.
package redact

import "bytes"

// Span is a part of a text.
type Span struct {
	From, To int
	Rest     bool // it continues an earlier secret
}

const mark = "[redacted]"

// Mask returns the replacement for the part.
func (s Span) Mask() []byte {
	p := bytes.Repeat([]byte{'*'}, s.To-s.From)
	if len(p) >= len(mark) {
		copy(p, mark)
	}
	return p
}

// Finder finds the secrets in a text that arrives in pieces. The zero value is ready to use.
type Finder struct {
	held   []byte     // end of earlier pieces that may be the beginning of a secret
	before []byte     // what precedes held
	zone   int        // bytes after the beginning of held in which a key may follow
	most   int        // minimum length of a run of base64 that counts as a key
	open   *[256]bool // bytes with which a secret continues
}

// Find returns the secrets in the next piece. Offsets of the first may be negative if earlier bytes turn out to be
// secret.
func (f *Finder) Find(p []byte) []Span {
	var found []Span
	skip := 0
	if f.open != nil {
		for skip < len(p) && f.open[p[skip]] {
			skip++
		}
		f.zone = max(0, f.zone-skip)
		if skip > 0 {
			found, f.before = append(found, Span{0, skip, true}), nil
		}
		if skip == len(p) {
			return found
		}
		f.open = nil
	}
	s := search{lookup: tables(), p: p[skip:], before: f.before}
	begin := skip - len(f.held)
	if len(f.held) > 0 {
		s.p = append(f.held[:len(f.held):len(f.held)], s.p...)
	}
	s.keep = len(s.p)
	s.zones(f.zone, f.most)
	s.tokens()
	for _, x := range s.found {
		found = append(found, Span{From: x.From + begin, To: x.To + begin})
	}
	if s.open != nil {
		s.keep = len(s.p)
	}
	f.open, f.held, f.before = s.open, bytes.Clone(s.p[s.keep:]), s.context(s.keep)
	f.zone, f.most = max(0, s.zone-s.keep), s.most
	return found
}

// Mask returns a complete text with its secrets masked, or p itself if there are none.
func Mask(p []byte) []byte {
	s := search{lookup: tables(), p: p, keep: len(p)}
	s.zones(0, 0)
	s.tokens()
	if len(s.found) == 0 {
		return p
	}
	p = bytes.Clone(p)
	for _, s := range s.found {
		copy(p[s.From:], s.Mask())
	}
	return p
}

type search struct {
	*lookup
	p      []byte
	before []byte // what precedes p
	found  []Span
	keep   int        // a secret may have begun here
	open   *[256]bool // bytes with which the last secret may continue

	zone, most int // see Finder; zone is an offset here
}

func (s *search) add(from, to int, class *[256]bool) {
	if from = s.unescaped(from); from < to {
		s.found = append(s.found, Span{From: from, To: to})
	}
	if to == len(s.p) {
		s.open = class
	}
}

const contextBytes = 32 // bytes before a position that a search uses

func (s *search) context(at int) []byte {
	if at >= contextBytes {
		return bytes.Clone(s.p[at-contextBytes : at])
	}
	c := append(s.before[:len(s.before):len(s.before)], s.p[:at]...)
	return c[max(0, len(c)-contextBytes):]
}

// at returns a byte of p or before; 0 before the first.
func (s *search) at(i int) byte {
	if i >= 0 {
		return s.p[i]
	}
	if i += len(s.before); i >= 0 {
		return s.before[i]
	}
	return 0
}

// unescaped skips a JSON escape at an offset.
func (s *search) unescaped(at int) int {
	switch {
	case s.at(at-1) != '\\':
		return at
	case s.p[at] == 'u':
		return at + len("u0000")
	}
	return at + 1
}

// zones finds base64 keys that the preceding text names.
func (s *search) zones(zone, most int) {
	s.zone, s.most = zone, most
	from := 0
	if zone > 0 {
		from = s.digits(0)
	}
	var next [len(markers)]int
	for i := range next {
		next[i] = s.marker(i, from)
	}
	for {
		i := 0
		for n := range next {
			if next[n] < next[i] {
				i = n
			}
		}
		if next[i] == len(s.p) {
			break
		}
		m := markers[i]
		from = max(from, next[i]+len(m.text))
		if before := s.context(next[i]); m.is(before) {
			s.zone, s.most = from+m.zone, m.most
			from = s.digits(from)
		}
		for n := range next {
			if next[n] < from {
				next[n] = s.marker(n, from)
			}
		}
	}
	for _, m := range markers {
		for n := min(len(m.text)-1, len(s.p)); n > 0; n-- {
			if string(s.p[len(s.p)-n:]) == m.text[:n] {
				s.hold(len(s.p) - n)
				break
			}
		}
	}
}

type marker struct {
	text string
	is   func(before []byte) bool
	zone int // a key follows within this many bytes
	most int // with at least this many digits
}

const keyEnd = "-----END"

var markers = [...]marker{
	{"PRIVATE KEY", begins, 16 << 10, 32},
	{"_access_key", ofAWS, 64, 40},
	{"_ACCESS_KEY", ofAWS, 64, 40},
	{"AccessKey", ofAWS, 64, 40},
}

func begins(before []byte) bool { return !bytes.Contains(before, []byte(keyEnd)) }

func ofAWS(before []byte) bool {
	return bytes.EqualFold(before[max(0, len(before)-len("secret")):], []byte("secret"))
}

func (s *search) marker(n, from int) int {
	if at := bytes.Index(s.p[from:], []byte(markers[n].text)); at >= 0 {
		return from + at
	}
	return len(s.p)
}

// digits masks the runs of digits from an offset to the end of the zone, and returns where it ended.
func (s *search) digits(i int) int {
	end := min(s.zone, len(s.p))
	if n := bytes.Index(s.p[i:end], []byte(keyEnd)); n >= 0 {
		end = i + n
		s.zone = end
	}
	for i < end {
		if !s.digit[s.p[i]] {
			i++
			continue
		}
		from := i
		for i < len(s.p) && s.digit[s.p[i]] {
			i++
		}
		switch {
		case i-from >= s.most:
			s.add(from, i, &s.digit)
		case i == len(s.p):
			s.hold(from)
		}
	}
	return i
}

func (s *search) hold(from int) { s.keep = min(s.keep, from) }
