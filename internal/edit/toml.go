package edit

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

type tomlDocument struct {
	text   string
	tables []*tomlTable // the first contains the keys above all headers
}

type tomlTable struct {
	path  Path
	array bool
	start int // of the header
	body  int // where the line of the header ends
	keys  []tomlKey
}

type tomlKey struct {
	path             Path
	start, end       int
	valueAt, valueTo int
}

func parseTOML(text string) (*tomlDocument, error) {
	text = strings.TrimPrefix(text, bom)
	d := &tomlDocument{text: text, tables: []*tomlTable{{}}}
	var p unstable.Parser
	p.Reset(slices.Clip([]byte(text))) // the parser locates errors by the address of the buffer
	for p.NextExpression() {
		e := p.Expression()
		var path Path
		first, last := 0, 0 // of the key
		for it := e.Key(); it.Next(); {
			key := it.Node()
			if path == nil {
				first = int(key.Raw.Offset)
			}
			path, last = append(path, string(key.Data)), int(key.Raw.Offset+key.Raw.Length)
		}
		start := lineStart(text, first)
		if e.Kind != unstable.KeyValue {
			d.tables = append(d.tables, &tomlTable{path: path, array: e.Kind == unstable.ArrayTable, start: start, body: lineEnd(text, last)})
			continue
		}
		end := int(e.Raw.Offset + e.Raw.Length)
		at := end - len(strings.TrimLeft(text[last:end], " \t="))
		t := d.tables[len(d.tables)-1]
		t.keys = append(t.keys, tomlKey{path: path, start: start, end: lineEnd(text, end), valueAt: at, valueTo: end})
	}
	if fault, is := errors.AsType[*unstable.ParserError](p.Error()); is {
		return nil, fmt.Errorf("%s: %w", lineOf(text, int(p.Range(fault.Highlight).Offset)), fault)
	}
	return d, p.Error()
}

func (t *tomlTable) selectedBy(d *tomlDocument, p Path) (rest Path, ok bool) {
	if len(p) < len(t.path) || !slices.Equal(p[:len(t.path)], t.path) {
		return nil, false
	}
	rest = p[len(t.path):]
	if !t.array {
		return rest, true
	}
	if len(rest) == 0 {
		return nil, false
	}
	id, ok := selector(rest[0])
	return rest[1:], ok && t.id(d) == id
}

func selector(element string) (id string, ok bool) {
	id, ok = strings.CutPrefix(element, "[id=")
	return strings.TrimSuffix(id, "]"), ok
}

func (t *tomlTable) id(d *tomlDocument) string {
	for _, k := range t.keys {
		if slices.Equal(k.path, Path{"id"}) {
			id, _ := tomlString(d.text[k.valueAt:k.valueTo])
			return id
		}
	}
	return ""
}

func (d *tomlDocument) find(p Path) (key *tomlKey, in *tomlTable, err error) {
	for _, t := range d.tables {
		rest, ok := t.selectedBy(d, p)
		if !ok {
			continue
		}
		if len(rest) == 0 {
			return nil, nil, fmt.Errorf("%s is a table", p)
		}
		if in == nil || len(t.path) >= len(in.path) {
			in = t
		}
		for i := range t.keys {
			k := &t.keys[i]
			switch n := min(len(k.path), len(rest)); {
			case !slices.Equal(k.path[:n], rest[:n]):
			case len(k.path) > len(rest):
				return nil, nil, fmt.Errorf("%s is a table", p)
			case len(k.path) < len(rest):
				return nil, nil, fmt.Errorf("%s is written on one line with others", p)
			case key != nil:
				return nil, nil, fmt.Errorf("%s is there twice", p)
			default:
				key, in = k, t
			}
		}
	}
	if in == d.tables[0] && len(p) > 1 {
		in = nil
	}
	return key, in, d.clash(p)
}

// Tables returns the names of the tables below the table above.
func Tables(text, above string) (names []string) {
	d, err := parseTOML(text)
	if err != nil {
		return nil
	}
	for _, t := range d.tables {
		if len(t.path) >= 2 && t.path[0] == above && !slices.Contains(names, t.path[1]) {
			names = append(names, t.path[1])
		}
	}
	return names
}

// clash returns an error if a table on a path has a form that this package does not change.
func (d *tomlDocument) clash(p Path) error {
	for _, t := range d.tables {
		if len(p) <= len(t.path) && slices.Equal(t.path[:len(p)], p) {
			return fmt.Errorf("%s is a table", p)
		}
		_, many := selector(append(slices.Clone(p), "", "")[1])
		if many && !t.array && slices.Equal(t.path[:min(1, len(t.path))], p[:1]) {
			return fmt.Errorf("%s is no array of tables", p[0])
		}
	}
	return nil
}

func (d *tomlDocument) get(p Path) (string, int, error) {
	k, in, err := d.find(p)
	switch {
	case err != nil:
		return "", 0, err
	case k != nil:
		return d.text[k.valueAt:k.valueTo], len(p), nil
	case in != nil:
		return "", len(p) - 1, nil
	}
	return "", 0, nil
}

// canPrune reports whether a table of an array contains nothing but its id.
func (d *tomlDocument) canPrune(p Path) bool {
	t := d.table(p)
	return t != nil && len(t.keys) <= 1 && !strings.Contains(d.text[t.body:t.end()], "#")
}

func (d *tomlDocument) table(p Path) *tomlTable {
	for _, t := range d.tables {
		if rest, ok := t.selectedBy(d, p); ok && t.array && len(rest) == 0 {
			return t
		}
	}
	return nil
}

func (t *tomlTable) end() int {
	if len(t.keys) == 0 {
		return t.body
	}
	return t.keys[len(t.keys)-1].end
}

func (d *tomlDocument) set(p Path, value string, raw bool) (string, error) {
	if !raw && strings.ContainsAny(value[:1], "{[") {
		return "", errors.New("only single values are written in TOML")
	}
	k, in, err := d.find(p)
	if err != nil {
		return "", err
	}
	if k != nil {
		return d.text[:k.valueAt] + value + d.text[k.valueTo:], nil
	}
	line := p[len(p)-1] + " = " + value
	switch {
	case in != nil && (in != d.tables[0] || len(in.keys) > 0):
		at := in.end()
		return d.text[:at] + "\n" + line + d.text[at:], nil
	case len(p) == 1:
		gap := "\n"
		if strings.TrimSpace(d.text) != "" {
			gap = "\n\n"
		}
		return line + gap + strings.TrimPrefix(d.text, "\n"), nil
	}
	id, ok := selector(p[1])
	if !ok || len(p) != 3 {
		return "", fmt.Errorf("there is no table %s", p[:len(p)-1])
	}
	before := strings.TrimRight(d.text, "\n")
	if before != "" {
		before += "\n\n"
	}
	return before + "[[" + p[0] + "]]\nid = " + quote(id) + "\n" + line + "\n", nil
}

func (d *tomlDocument) remove(p Path) (string, error) {
	if t := d.table(p); t != nil {
		before, after := strings.TrimRight(d.text[:t.start], "\n"), strings.TrimLeft(d.text[t.end():], "\n")
		switch {
		case before == "":
			return after, nil
		case after == "":
			return before + "\n", nil
		}
		return before + "\n\n" + after, nil
	}
	k, _, err := d.find(p)
	if k == nil || err != nil {
		return d.text, err
	}
	return d.text[:k.start] + d.text[min(k.end+1, len(d.text)):], nil
}

func tomlString(raw string) (string, bool) {
	switch {
	case len(raw) >= 2 && raw[0] == '\'' && !strings.HasPrefix(raw, "'''"):
		return raw[1 : len(raw)-1], true
	case len(raw) >= 2 && raw[0] == '"' && !strings.HasPrefix(raw, `"""`):
		var s string
		err := json.Unmarshal([]byte(raw), &s)
		return s, err == nil
	}
	return "", false
}

// Only returns a TOML text that contains only the named settings and tables.
func Only(text string, names []string) (string, error) {
	d, err := parseTOML(text)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, t := range d.tables {
		whole := len(t.path) > 0
		if whole && !slices.Contains(names, t.path[0]) {
			continue
		}
		b.WriteString(d.text[t.start:t.body] + "\n")
		for _, k := range t.keys {
			if whole || slices.Contains(names, k.path[0]) {
				b.WriteString(d.text[k.start:k.end] + "\n")
			}
		}
	}
	return b.String(), nil
}
