package edit

import (
	"fmt"
	"regexp"
	"strings"
)

// tomlScanner reads the structure of TOML: headers, keys, and where values end.
type tomlScanner struct {
	text string
	at   int
}

func parseTOML(text string) (document, error) {
	s := &tomlScanner{text: text}
	d := &tomlDocument{text: text, tables: []*tomlTable{{}}}
	for {
		s.space(true)
		if s.at == len(text) {
			return d, nil
		}
		if text[s.at] == '[' {
			t, err := s.header()
			if err != nil {
				return nil, err
			}
			d.tables = append(d.tables, t)
			continue
		}
		k, err := s.setting()
		if err != nil {
			return nil, err
		}
		t := d.tables[len(d.tables)-1]
		t.keys = append(t.keys, k)
	}
}

func (s *tomlScanner) fault(what string) error {
	return fmt.Errorf("%s: %s", place(s.text, s.at), what)
}

// space skips white space and, with lines, newlines and comments.
func (s *tomlScanner) space(lines bool) {
	if s.at == 0 {
		s.at += len(s.text) - len(strings.TrimPrefix(s.text, "\ufeff"))
	}
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == ' ' || c == '\t':
			s.at++
		case lines && (c == '\n' || c == '\r'):
			s.at++
		case lines && c == '#':
			s.at = lineEnd(s.text, s.at)
		default:
			return
		}
	}
}

func (s *tomlScanner) next(c byte) bool {
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

// rest skips to the end of the line, which may contain only a comment.
func (s *tomlScanner) rest() error {
	s.space(false)
	end := lineEnd(s.text, s.at)
	if left := strings.TrimSuffix(s.text[s.at:end], "\r"); left != "" && left[0] != '#' {
		return s.fault("the end of the line is expected")
	}
	s.at = end
	return nil
}

func (s *tomlScanner) header() (*tomlTable, error) {
	t := &tomlTable{start: lineStart(s.text, s.at)}
	s.at++
	t.array = s.next('[')
	var err error
	if t.path, err = s.keyPath(); err != nil {
		return nil, err
	}
	if !s.next(']') || t.array && !s.next(']') {
		return nil, s.fault("the end of a table's name is expected")
	}
	err = s.rest()
	t.body = s.at
	return t, err
}

func (s *tomlScanner) setting() (k tomlKey, err error) {
	k.start = lineStart(s.text, s.at)
	if k.path, err = s.keyPath(); err != nil {
		return k, err
	}
	if !s.next('=') {
		return k, s.fault("= is expected after a key")
	}
	s.space(false)
	k.valueAt = s.at
	if err = s.value(0); err != nil {
		return k, err
	}
	k.valueTo = s.at
	err = s.rest()
	k.end = s.at
	return k, err
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+`)

// keyPath reads a dotted key and the white space after it.
func (s *tomlScanner) keyPath() (p Path, err error) {
	for {
		s.space(false)
		from := s.at
		switch {
		case s.at < len(s.text) && (s.text[s.at] == '"' || s.text[s.at] == '\''):
			if err = s.str(); err != nil {
				return nil, err
			}
			key, ok := tomlString(s.text[from:s.at])
			if !ok {
				return nil, s.fault("a key cannot be read")
			}
			p = append(p, key)
		default:
			key := bareKey.FindString(s.text[s.at:])
			if key == "" {
				return nil, s.fault("a key is expected")
			}
			s.at += len(key)
			p = append(p, key)
		}
		s.space(false)
		if !s.next('.') {
			return p, nil
		}
	}
}

var bareValue = regexp.MustCompile(`^(true|false|[+-]?(inf|nan)|[+-]?[0-9][0-9A-Za-z_.:+-]*( [0-9]{2}:[0-9:.]+[0-9A-Za-z:+-]*)?)`)

func (s *tomlScanner) value(depth int) error {
	switch {
	case s.at == len(s.text):
		return s.fault("a value is expected")
	case depth > maxDepth:
		return s.fault("it is nested too deep")
	}
	switch s.text[s.at] {
	case '"', '\'':
		return s.str()
	case '[':
		return s.list(depth)
	case '{':
		return s.inline(depth)
	}
	word := bareValue.FindString(s.text[s.at:])
	if word == "" {
		return s.fault("a value is expected")
	}
	s.at += len(word)
	return nil
}

func (s *tomlScanner) str() error {
	quote := s.text[s.at : s.at+1]
	if long := strings.Repeat(quote, 3); strings.HasPrefix(s.text[s.at:], long) {
		return s.long(long)
	}
	from := s.at
	for s.at++; s.at < len(s.text) && s.text[s.at] != '\n'; s.at++ {
		switch {
		case quote == `"` && s.text[s.at] == '\\':
			s.at++
		case s.text[s.at] == quote[0]:
			s.at++
			return nil
		}
	}
	s.at = from
	return s.fault("a string does not end")
}

// long reads a string of several lines, which may end in up to two quotes more.
func (s *tomlScanner) long(quotes string) error {
	from := s.at
	for s.at += 3; s.at < len(s.text); s.at++ {
		switch {
		case quotes[0] == '"' && s.text[s.at] == '\\':
			s.at++
		case strings.HasPrefix(s.text[s.at:], quotes):
			s.at += 3
			for range 2 {
				s.next(quotes[0])
			}
			return nil
		}
	}
	s.at = from
	return s.fault("a string does not end")
}

func (s *tomlScanner) list(depth int) error {
	for s.at++; ; {
		s.space(true)
		if s.next(']') {
			return nil
		}
		if err := s.value(depth + 1); err != nil {
			return err
		}
		s.space(true)
		if !s.next(',') {
			if s.next(']') {
				return nil
			}
			return s.fault("a comma or the end of a list is expected")
		}
	}
}

func (s *tomlScanner) inline(depth int) error {
	for s.at++; ; {
		s.space(true)
		if s.next('}') {
			return nil
		}
		if _, err := s.keyPath(); err != nil {
			return err
		}
		if !s.next('=') {
			return s.fault("= is expected after a key")
		}
		s.space(false)
		if err := s.value(depth + 1); err != nil {
			return err
		}
		s.space(true)
		if !s.next(',') {
			if s.next('}') {
				return nil
			}
			return s.fault("a comma or the end of a table is expected")
		}
	}
}
