// Package redact finds secrets of known shapes, such as tokens of services and private keys, and
// masks them without changing the length. It recognizes a prefix and the characters that follow, so
// it misses passwords and other services, and may mask look-alikes. Time is linear in the text.
package redact

import "bytes"

// Span is a part of a text.
type Span struct {
	From, To int
	Rest     bool // continues an earlier secret
}

const mark = "[redacted]"

// Mask returns the replacement of the part.
func (s Span) Mask() []byte {
	p := bytes.Repeat([]byte{'*'}, s.To-s.From)
	if len(p) >= len(mark) {
		copy(p, mark)
	}
	return p
}

// Finder finds the secrets of a text that comes in pieces. The zero Finder is ready.
type Finder struct {
	held   []byte     // end of earlier pieces that may begin a secret
	before []byte     // what precedes held
	zone   int        // bytes from held on in which a key may follow
	most   int        // length of base64 runs that are keys
	open   *[256]bool // a secret continues with these bytes
}

// Find returns the secrets of the next piece. The first may have negative offsets: earlier bytes
// turned out to be secret.
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

// Mask returns a whole text with its secrets masked, or p itself if it has none.
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
	open   *[256]bool // the last secret may continue

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

const contextBytes = 32 // how far a search looks back

func (s *search) context(at int) []byte {
	if at >= contextBytes {
		return bytes.Clone(s.p[at-contextBytes : at])
	}
	c := append(s.before[:len(s.before):len(s.before)], s.p[:at]...)
	return c[max(0, len(c)-contextBytes):]
}

// at returns a byte, also of before; 0 before the first.
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

// zones looks for base64 keys that are named by what precedes.
func (s *search) zones(zone, most int) {
	s.zone, s.most = zone, most
	from := 0
	if zone > 0 {
		from = s.digits(0)
	}
	var next [len(markers)]int // next position of each marker
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
	most int // with at least so many digits
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

// digits masks the runs of digits from an offset to the end of the zone, and returns where it ends.
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
