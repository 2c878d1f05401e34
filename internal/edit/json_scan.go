package edit

import (
	"encoding/json"
	"fmt"
	"strings"
)

// scanner reads JSON with comments and trailing commas.
type scanner struct {
	text string
	at   int
}

const maxDepth = 100

func (s *scanner) fault(what string) error {
	return fmt.Errorf("%s: %s", place(s.text, s.at), what)
}

func (s *scanner) skip() error {
	for s.at < len(s.text) {
		rest := s.text[s.at:]
		switch {
		case strings.ContainsRune(" \t\r\n", rune(rest[0])):
			s.at++
		case s.at == 0 && strings.HasPrefix(rest, "\ufeff"):
			s.at += len("\ufeff")
		case strings.HasPrefix(rest, "//"):
			s.at = lineEnd(s.text, s.at)
		case strings.HasPrefix(rest, "/*"):
			n := strings.Index(rest[2:], "*/")
			if n < 0 {
				return s.fault("a comment does not end")
			}
			s.at += n + 4
		default:
			return nil
		}
	}
	return nil
}

// peek returns the next character after white space, 0 at the end.
func (s *scanner) peek() (byte, error) {
	if err := s.skip(); err != nil || s.at == len(s.text) {
		return 0, err
	}
	return s.text[s.at], nil
}

func (s *scanner) value(depth int) (*node, error) {
	c, err := s.peek()
	switch {
	case err != nil:
		return nil, err
	case depth > maxDepth:
		return nil, s.fault("it is nested too deep")
	case c == '{' || c == '[':
		return s.parts(depth, c)
	}
	n := &node{start: s.at}
	if c == '"' {
		_, err = s.string()
	} else {
		for s.at < len(s.text) && !strings.ContainsRune(" \t\r\n,]}/:\"", rune(s.text[s.at])) {
			s.at++
		}
		if !json.Valid([]byte(s.text[n.start:s.at])) {
			s.at = n.start
			err = s.fault("a value is expected")
		}
	}
	n.end = s.at
	return n, err
}

func (s *scanner) string() (string, error) {
	from := s.at
	for s.at++; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			var v string
			if err := json.Unmarshal([]byte(s.text[from:s.at]), &v); err != nil {
				return "", s.fault("a string is not valid")
			}
			return v, nil
		}
	}
	s.at = from
	return "", s.fault("a string does not end")
}

func (s *scanner) parts(depth int, open byte) (*node, error) {
	n := &node{start: s.at}
	s.at++
	for more := true; ; {
		c, err := s.peek()
		if err != nil {
			return nil, err
		}
		if c == open+2 { // '}' and ']' are two after '{' and '['
			s.at++
			n.end = s.at
			return n, nil
		}
		if c == 0 || !more {
			return nil, s.fault("a comma or the end of what " + string(open) + " begins is expected")
		}
		if err := s.part(n, depth, open); err != nil {
			return nil, err
		}
		if c, err = s.peek(); err != nil {
			return nil, err
		}
		if more = c == ','; more {
			s.at++
		}
	}
}

func (s *scanner) part(n *node, depth int, open byte) error {
	if open == '[' {
		e, err := s.value(depth + 1)
		n.elements = append(n.elements, e)
		return err
	}
	m := member{start: s.at}
	if s.text[s.at] != '"' {
		return s.fault("a key in double quotes is expected")
	}
	var err error
	if m.key, err = s.string(); err != nil {
		return err
	}
	if c, err := s.peek(); err != nil || c != ':' {
		return s.fault("a colon is expected")
	}
	s.at++
	m.value, err = s.value(depth + 1)
	n.members = append(n.members, m)
	return err
}

func (n *node) decode(text string) (v any, err error) {
	switch text[n.start] {
	case '{':
		table := map[string]any{}
		for _, m := range n.members {
			if table[m.key], err = m.value.decode(text); err != nil {
				return nil, err
			}
		}
		return table, nil
	case '[':
		list := make([]any, len(n.elements))
		for i, e := range n.elements {
			if list[i], err = e.decode(text); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	err = json.Unmarshal([]byte(text[n.start:n.end]), &v)
	return v, err
}
