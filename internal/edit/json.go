package edit

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// jsonDocument is a text with the places of its values.
type jsonDocument struct {
	text string
	root *node
}

// node is one value: text[start:end].
type node struct {
	start, end int
	members    []member // of an object
	elements   []*node  // of an array
}

type member struct {
	key   string
	start int // of the key
	value *node
}

func parseJSON(text string) (document, error) {
	if strings.TrimSpace(text) == "" {
		text = "{}\n"
	}
	s := &scanner{text: text}
	root, err := s.value(0)
	if err == nil {
		if err = s.skip(); err == nil && s.at < len(text) {
			err = s.fault("something follows the end of the object")
		}
	}
	if err == nil && text[root.start] != '{' {
		err = errors.New("the file is no JSON object")
	}
	return &jsonDocument{text, root}, err
}

// find returns the value at a path, or nil, and the last table on the way.
func (d *jsonDocument) find(p Path) (found, above *node, depth int, err error) {
	n := d.root
	for i, key := range p {
		if d.text[n.start] != '{' {
			return nil, nil, i, fmt.Errorf("%s is no object", p[:i])
		}
		var next *node
		for _, m := range n.members {
			if m.key == key && next != nil {
				return nil, nil, i, fmt.Errorf("%s is there twice", p[:i+1])
			}
			if m.key == key {
				next = m.value
			}
		}
		if next == nil {
			return nil, n, i, nil
		}
		above, n = n, next
	}
	return n, above, len(p), nil
}

func (d *jsonDocument) get(p Path) (string, int, error) {
	n, _, depth, err := d.find(p)
	if n == nil || err != nil {
		return "", depth, err
	}
	return d.text[n.start:n.end], depth, nil
}

func (d *jsonDocument) hollow(p Path) bool {
	n, _, _, err := d.find(p)
	if err != nil || n == nil {
		return false
	}
	return d.text[n.start] == '{' && len(n.members) == 0
}

func (d *jsonDocument) set(p Path, value string, raw bool) (string, error) {
	n, above, depth, err := d.find(p)
	if err != nil {
		return "", err
	}
	if n != nil {
		if !raw {
			value = d.layout(value, d.indentOf(n.start))
		}
		return d.text[:n.start] + value + d.text[n.end:], nil
	}
	for i := len(p) - 1; i > depth; i-- {
		value = "{" + quote(p[i]) + ":" + value + "}"
	}
	return d.insert(above, quote(p[depth])+": ", value), nil
}

type span struct{ start, end int }

func (n *node) parts() (list []span) {
	for _, m := range n.members {
		list = append(list, span{m.start, m.value.end})
	}
	for _, e := range n.elements {
		list = append(list, span{e.start, e.end})
	}
	return list
}

func (d *jsonDocument) insert(in *node, key, value string) string {
	inner, parts := d.indentOf(in.start)+d.unit(), in.parts()
	if len(parts) == 0 {
		head := strings.TrimRight(d.text[:in.end-1], " \t\r\n")
		return head + "\n" + inner + key + d.layout(value, inner) + "\n" + d.indentOf(in.start) + d.text[in.end-1:]
	}
	last := parts[len(parts)-1].end
	after := d.comma(last)
	head := d.text[:after]
	if after == last {
		head += ","
	}
	first := parts[0].start
	if !strings.Contains(d.text[in.start:first], "\n") { // all on a line
		return head + " " + key + value + d.text[after:]
	}
	inner = d.indentOf(first)
	end := lineEnd(d.text, after)
	if !onlyComment(d.text[after:end]) {
		end = after
	}
	return head + d.text[after:end] + "\n" + inner + key + d.layout(value, inner) + d.text[end:]
}

func (d *jsonDocument) comma(last int) int {
	s := &scanner{text: d.text, at: last}
	if c, err := s.peek(); err == nil && c == ',' {
		return s.at + 1
	}
	return last
}

// onlyComment reports whether the rest of a line is empty or a comment that ends in it.
func onlyComment(rest string) bool {
	rest = strings.TrimSpace(rest)
	if rest == "" || strings.HasPrefix(rest, "//") {
		return true
	}
	return strings.HasPrefix(rest, "/*") && strings.Index(rest, "*/") == len(rest)-2
}

func (d *jsonDocument) indentOf(at int) string {
	line := d.text[lineStart(d.text, at):]
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// unit is one step of indentation as the file has it.
func (d *jsonDocument) unit() string {
	for _, m := range d.root.members {
		if indent := d.indentOf(m.start); indent != "" && strings.Contains(d.text[:m.start], "\n") {
			return indent
		}
	}
	return "  "
}

// layout writes a JSON value over several lines, unless it is short.
func (d *jsonDocument) layout(value, indent string) string {
	var v json.RawMessage = []byte(value)
	if !strings.HasPrefix(value, "{") {
		return strings.ReplaceAll(value, `","`, `", "`) // a list of texts
	}
	text, err := json.MarshalIndent(v, indent, d.unit())
	if err != nil {
		return value
	}
	return string(text)
}

func (d *jsonDocument) remove(p Path) (string, error) {
	n, above, _, err := d.find(p)
	if n == nil || err != nil {
		return d.text, err
	}
	return d.cut(above, slices.IndexFunc(above.members, func(m member) bool { return m.value == n })), nil
}

// cut removes one part of an object or array, with its comma and its line.
func (d *jsonDocument) cut(in *node, which int) string {
	parts := in.parts()
	from, to := parts[which].start, parts[which].end
	switch after := d.comma(to); {
	case len(parts) == 1: // nothing is left
		kept := strings.TrimRight(d.text[:from], " \t\r\n")
		rest := strings.TrimLeft(d.text[after:], " \t\r\n")
		if len(kept) == in.start+1 && len(d.text)-len(rest) == in.end-1 {
			return kept + rest
		}
		return d.text[:from] + d.text[after:]
	case which == len(parts)-1 && after == to: // the comma before it goes
		comma := d.comma(parts[which-1].end) - 1
		return d.text[:comma] + strings.TrimRight(d.text[comma+1:from], " \t\r\n") + d.text[to:]
	default:
		to = after
	}
	if begin := lineStart(d.text, from); strings.TrimSpace(d.text[begin:from]) == "" && strings.TrimSpace(d.text[to:lineEnd(d.text, to)]) == "" {
		return d.text[:begin] + d.text[min(lineEnd(d.text, to)+1, len(d.text)):]
	}
	return d.text[:from] + strings.TrimLeft(d.text[to:], " \t")
}

func (d *jsonDocument) array(p Path) (*node, error) {
	n, _, _, err := d.find(p)
	if err != nil {
		return nil, err
	}
	if n == nil || d.text[n.start] != '[' {
		return nil, fmt.Errorf("%s is no array", p)
	}
	return n, nil
}

func (d *jsonDocument) items(p Path) (list []string, err error) {
	n, err := d.array(p)
	if err != nil {
		return nil, err
	}
	for _, e := range n.elements {
		list = append(list, d.text[e.start:e.end])
	}
	return list, nil
}

func (d *jsonDocument) include(p Path, item string) (string, error) {
	n, err := d.array(p)
	if err != nil {
		return "", err
	}
	if len(n.elements) == 0 && strings.TrimSpace(d.text[n.start+1:n.end-1]) == "" {
		return d.text[:n.start] + "[" + item + "]" + d.text[n.end:], nil
	}
	return d.insert(n, "", item), nil
}

func (d *jsonDocument) exclude(p Path, item int) (string, error) {
	n, err := d.array(p)
	if err != nil {
		return "", err
	}
	return d.cut(n, item), nil
}
