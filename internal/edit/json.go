package edit

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/toold/toold/internal/strict"
)

type jsonDocument struct {
	text string
	root *hujson.Value
}

const maxDepth = 100

func parseJSON(text string) (document, error) {
	if strings.TrimSpace(text) == "" {
		text = "{}\n"
	}
	if strict.TooDeep([]byte(text), maxDepth) {
		return nil, errors.New("it is nested too deep")
	}
	root, err := hujson.Parse([]byte(text + "\n")) // a comment may end the file
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "hujson: "))
	}
	if _, ok := root.Value.(*hujson.Object); !ok {
		err = errors.New("the file is no JSON object")
	}
	return &jsonDocument{text, &root}, err
}

func (d *jsonDocument) find(p Path) (found, above *hujson.Value, depth int, err error) {
	n := d.root
	for i, key := range p {
		table, ok := n.Value.(*hujson.Object)
		if !ok {
			return nil, nil, i, fmt.Errorf("%s is no object", p[:i])
		}
		var next *hujson.Value
		for m := range table.Members {
			member := &table.Members[m]
			if same := member.Name.Value.(hujson.Literal).String() == key; same && next != nil {
				return nil, nil, i, fmt.Errorf("%s is there twice", p[:i+1])
			} else if same {
				next = &member.Value
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
	return d.text[n.StartOffset:n.EndOffset], depth, nil
}

func (d *jsonDocument) canPrune(p Path) bool {
	n, _, _, err := d.find(p)
	if err != nil || n == nil {
		return false
	}
	table, ok := n.Value.(*hujson.Object)
	return ok && len(table.Members) == 0
}

func (d *jsonDocument) set(p Path, value string, raw bool) (string, error) {
	n, above, depth, err := d.find(p)
	if err != nil {
		return "", err
	}
	if n != nil {
		if !raw {
			value = d.layout(value, d.indentOf(n.StartOffset))
		}
		return d.text[:n.StartOffset] + value + d.text[n.EndOffset:], nil
	}
	for i := len(p) - 1; i > depth; i-- {
		value = "{" + quote(p[i]) + ":" + value + "}"
	}
	return d.insert(above, quote(p[depth])+": ", value), nil
}

// part is a member or an element. comma is the offset after its comma, or end.
type part struct{ start, end, comma int }

func parts(of *hujson.Value) (list []part) {
	add := func(start int, v hujson.Value, last bool) {
		p := part{start, v.EndOffset, v.EndOffset}
		if !last || v.AfterExtra != nil {
			p.comma += len(v.AfterExtra) + 1
		}
		list = append(list, p)
	}
	switch of := of.Value.(type) {
	case *hujson.Object:
		for i, m := range of.Members {
			add(m.Name.StartOffset, m.Value, i == len(of.Members)-1)
		}
	case *hujson.Array:
		for i, e := range of.Elements {
			add(e.StartOffset, e, i == len(of.Elements)-1)
		}
	}
	return list
}

func (d *jsonDocument) insert(in *hujson.Value, key, value string) string {
	inner, parts := d.indentOf(in.StartOffset)+d.unit(), parts(in)
	if len(parts) == 0 {
		head := strings.TrimRight(d.text[:in.EndOffset-1], " \t\r\n")
		return head + "\n" + inner + key + d.layout(value, inner) + "\n" + d.indentOf(in.StartOffset) + d.text[in.EndOffset-1:]
	}
	last, after := parts[len(parts)-1].end, parts[len(parts)-1].comma
	head := d.text[:after]
	if after == last {
		head += ","
	}
	first := parts[0].start
	if !strings.Contains(d.text[in.StartOffset:first], "\n") {
		return head + " " + key + value + d.text[after:]
	}
	inner = d.indentOf(first)
	end := lineEnd(d.text, after)
	if !onlyComment(d.text[after:end]) {
		end = after
	}
	return head + d.text[after:end] + "\n" + inner + key + d.layout(value, inner) + d.text[end:]
}

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

func (d *jsonDocument) unit() string {
	for _, m := range parts(d.root) {
		if indent := d.indentOf(m.start); indent != "" && strings.Contains(d.text[:m.start], "\n") {
			return indent
		}
	}
	return "  "
}

func (d *jsonDocument) layout(value, indent string) string {
	var v json.RawMessage = []byte(value)
	if !strings.HasPrefix(value, "{") {
		return strings.ReplaceAll(value, `","`, `", "`)
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
	which := slices.IndexFunc(parts(above), func(m part) bool { return m.end == n.EndOffset })
	return d.cut(above, which), nil
}

func (d *jsonDocument) cut(in *hujson.Value, which int) string {
	parts := parts(in)
	from, to := parts[which].start, parts[which].end
	switch after := parts[which].comma; {
	case len(parts) == 1:
		kept := strings.TrimRight(d.text[:from], " \t\r\n")
		rest := strings.TrimLeft(d.text[after:], " \t\r\n")
		if len(kept) == in.StartOffset+1 && len(d.text)-len(rest) == in.EndOffset-1 {
			return kept + rest
		}
		return d.text[:from] + d.text[after:]
	case which == len(parts)-1 && after == to: // remove the comma before it
		comma := parts[which-1].comma - 1
		return d.text[:comma] + strings.TrimRight(d.text[comma+1:from], " \t\r\n") + d.text[to:]
	default:
		to = after
	}
	if begin := lineStart(d.text, from); strings.TrimSpace(d.text[begin:from]) == "" && strings.TrimSpace(d.text[to:lineEnd(d.text, to)]) == "" {
		return d.text[:begin] + d.text[min(lineEnd(d.text, to)+1, len(d.text)):]
	}
	return d.text[:from] + strings.TrimLeft(d.text[to:], " \t")
}

func (d *jsonDocument) array(p Path) (*hujson.Value, error) {
	n, _, _, err := d.find(p)
	if err != nil {
		return nil, err
	}
	if n == nil || d.text[n.StartOffset] != '[' {
		return nil, fmt.Errorf("%s is no array", p)
	}
	return n, nil
}

func (d *jsonDocument) items(p Path) (list []string, err error) {
	n, err := d.array(p)
	if err != nil {
		return nil, err
	}
	for _, e := range parts(n) {
		list = append(list, d.text[e.start:e.end])
	}
	return list, nil
}

func (d *jsonDocument) include(p Path, item string) (string, error) {
	n, err := d.array(p)
	if err != nil {
		return "", err
	}
	if len(parts(n)) == 0 && strings.TrimSpace(d.text[n.StartOffset+1:n.EndOffset-1]) == "" {
		return d.text[:n.StartOffset] + "[" + item + "]" + d.text[n.EndOffset:], nil
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
