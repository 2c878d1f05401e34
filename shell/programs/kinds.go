package programs

import "strings"

// objects replaces the kind of the object of a command by its first name: "pod/x", "pods x" and "po
// x" are equal. Each of several kinds is another way to parse it.
func (s *spec) objects(c *Command) {
	at := len(c.Sub)
	w := c.Words[at]
	if w.Dynamic {
		return
	}
	rest := c.Words[at+1:]
	for i, name := range strings.Split(strings.ToLower(w.Text), ",") {
		if i > maxReadings {
			return
		}
		words := append([]Word{}, c.Words[:at]...)
		kind, object, split := strings.Cut(name, "/")
		kind, _, _ = strings.Cut(kind, ".") // deployments.apps
		if first := s.kinds[kind]; first != "" {
			kind = first
		}
		words = append(words, Word{Text: kind})
		if split {
			words = append(words, Word{Text: object})
		}
		if words = append(words, rest...); i == 0 {
			c.Words = words
			continue
		}
		other := *c
		other.Words = words
		c.Or = &other
	}
}
