// Package redact finds secrets of known shapes in text, such as tokens of well-known services
// and private keys, and masks them without changing the length of the text.
//
// It knows a secret by its prefix and the characters that follow, so it finds neither
// passwords nor secrets of other services, and it may take for a secret what only looks like
// one. Time is linear in the text, and the same for all texts within a small factor.
package redact

import "bytes"

// A Span is a part of a text.
type Span struct {
	From, To int
	Rest     bool // of a secret whose beginning was found before
}

const mark = "[redacted]"

// Mask is what takes the place of the part.
func (s Span) Mask() []byte {
	p := bytes.Repeat([]byte{'*'}, s.To-s.From)
	if len(p) >= len(mark) {
		copy(p, mark)
	}
	return p
}

// A Finder finds the secrets of a text that comes in pieces. The zero Finder is ready.
type Finder struct {
	held   []byte     // the end of the pieces before, while a secret may have begun in it
	before []byte     // what comes before held
	zone   int        // in so many bytes from held on a key may follow
	most   int        // runs of at least so many base64 digits are one
	open   *[256]bool // a secret goes on with these bytes
}

// Find returns the parts of the next piece that are secrets. The first ones may begin before
// it, with negative offsets: then bytes of earlier pieces have turned out to be of a secret.
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

// Mask returns a whole text with its secrets masked: p itself, unchanged, when it has none.
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
	before []byte // what comes before p
	found  []Span
	keep   int        // from here on a secret may have begun
	open   *[256]bool // the last one found may go on

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

// contextBytes is how far a search looks back.
const contextBytes = 32

// context is what comes before an offset.
func (s *search) context(at int) []byte {
	if at >= contextBytes {
		return bytes.Clone(s.p[at-contextBytes : at])
	}
	c := append(s.before[:len(s.before):len(s.before)], s.p[:at]...)
	return c[max(0, len(c)-contextBytes):]
}

// at is a byte, also one of those before; 0 before the first.
func (s *search) at(i int) byte {
	if i >= 0 {
		return s.p[i]
	}
	if i += len(s.before); i >= 0 {
		return s.before[i]
	}
	return 0
}

// unescaped is the first byte from an offset on that is in no escape of JSON.
func (s *search) unescaped(at int) int {
	switch {
	case s.at(at-1) != '\\':
		return at
	case s.p[at] == 'u':
		return at + len("u0000")
	}
	return at + 1
}

// zones looks for keys that consist of base64 digits and are named by what comes before.
func (s *search) zones(zone, most int) {
	s.zone, s.most = zone, most
	from := 0
	if zone > 0 {
		from = s.digits(0)
	}
	var next [len(markers)]int // where each marker is next
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
	zone int // a key follows in so many bytes
	most int // and has at least so many digits
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

// marker is where a marker is from an offset on; the end of the text for none.
func (s *search) marker(n, from int) int {
	if at := bytes.Index(s.p[from:], []byte(markers[n].text)); at >= 0 {
		return from + at
	}
	return len(s.p)
}

// digits masks the runs of digits from an offset to the end of the zone, and returns where it
// ends.
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

// hold keeps the text from an offset on for the next piece.
func (s *search) hold(from int) { s.keep = min(s.keep, from) }
