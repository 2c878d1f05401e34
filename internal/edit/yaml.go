package edit

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
)

type yamlDocument struct {
	text string
	keys []yamlKey
}

// yamlKey is a key and its value: the rest of its line, or the more indented lines below it.
type yamlKey struct {
	name             string
	indent           int
	start            int
	valueAt, valueTo int
	body             int // the first line below it
	inline           bool
}

func parseYAML(text string) (document, error) {
	if _, err := decodeYAML(text); err != nil {
		return nil, err
	}
	d := &yamlDocument{text: text}
	var err error
	d.keys, err = d.mapping(0, len(text))
	return d, err
}

func decodeYAML(text string) (map[string]any, error) {
	tree := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &tree); err != nil {
		return nil, errors.New(yaml.FormatError(err, false, false))
	}
	if tree == nil {
		tree = map[string]any{}
	}
	return tree, nil
}

// mapping returns the keys of the mapping in a range of the text.
func (d *yamlDocument) mapping(from, to int) (keys []yamlKey, err error) {
	indent := -1
	for at := from; at < to; {
		end := lineEnd(d.text, at)
		next := min(end+1, to)
		line := strings.TrimRight(d.text[at:end], " \t\r")
		deep := len(line) - len(strings.TrimLeft(line, " "))
		blank := line == "" || strings.HasPrefix(line[deep:], "#")
		switch {
		case blank, indent < 0 && line == "---":
		case indent >= 0 && deep > indent, deep == indent && isItem(line[deep:]): // part of the value above
			keys[len(keys)-1].valueTo = at + len(line)
		case indent >= 0 && deep < indent:
			return nil, fmt.Errorf("%s: it is written in a form that is not changed here", lineOf(d.text, at))
		default:
			key, ok := readYAMLKey(line[deep:])
			if !ok {
				return nil, fmt.Errorf("%s: it is written in a form that is not changed here", lineOf(d.text, at))
			}
			indent = deep
			key.indent, key.start, key.body = deep, at, next
			key.valueAt, key.valueTo = key.valueAt+at+deep, key.valueTo+at+deep
			keys = append(keys, key)
		}
		at = next
	}
	return keys, nil
}

func isItem(line string) bool { return line == "-" || strings.HasPrefix(line, "- ") }

func readYAMLKey(line string) (k yamlKey, ok bool) {
	name, rest, ok := strings.Cut(line, ":")
	if quoted := strings.IndexAny(line, `"'`) == 0; quoted {
		end := strings.IndexByte(line[1:], line[0]) + 1
		ok = end > 0 && strings.HasPrefix(line[end+1:], ":") && !strings.Contains(line[:end], `\`)
		if ok {
			name, rest = line[1:end], line[end+2:]
		}
	}
	apart := rest == "" || rest[0] == ' '
	if !ok || !apart || strings.ContainsAny(name, "{}[]&*#?|>!%@`,") {
		return k, false
	}
	k.name = strings.TrimSpace(name)
	k.valueAt = len(line) - len(rest)
	value := strings.TrimSpace(withoutComment(rest))
	k.valueTo, k.inline = k.valueAt, value != ""
	if k.inline {
		k.valueAt += strings.Index(rest, value)
		k.valueTo = k.valueAt + len(value)
	}
	return k, k.name != ""
}

// withoutComment returns a line without the comment at its end.
func withoutComment(line string) string {
	var in byte
	for i := range len(line) {
		switch c := line[i]; {
		case in != 0 && c == in:
			in = 0
		case in != 0:
		case (c == '"' || c == '\'') && strings.TrimSpace(line[:i]) == "": // elsewhere they are literal
			in = c
		case c == '#' && i > 0 && line[i-1] == ' ':
			return line[:i]
		}
	}
	return line
}

func (d *yamlDocument) find(p Path) (way []yamlKey, err error) {
	keys := d.keys
	for i, name := range p {
		found := false
		for _, k := range keys {
			if k.name == name {
				way, found = append(way, k), true
			}
		}
		if !found || i == len(p)-1 {
			return way, nil
		}
		k := way[len(way)-1]
		if d.hollowKey(k) {
			return way, nil
		}
		if k.inline {
			return nil, fmt.Errorf("%s: %s is written on one line, which is not changed here", lineOf(d.text, k.start), p[:i+1])
		}
		if keys, err = d.mapping(k.body, k.valueTo); err != nil {
			return nil, err
		}
	}
	return way, nil
}

// hollowKey reports whether a key has an empty mapping or no value.
func (d *yamlDocument) hollowKey(k yamlKey) bool {
	text := d.text[k.valueAt:k.valueTo]
	return text == "" || text == "{}"
}

func (d *yamlDocument) get(p Path) (string, int, error) {
	way, err := d.find(p)
	if err != nil || len(way) < len(p) {
		return "", len(way), err
	}
	k := way[len(way)-1]
	return d.text[k.valueAt:k.valueTo], len(way), nil
}

func (d *yamlDocument) canPrune(p Path) bool {
	way, err := d.find(p)
	return err == nil && len(way) == len(p) && d.hollowKey(way[len(way)-1])
}

func (d *yamlDocument) set(p Path, value string, raw bool) (string, error) {
	way, err := d.find(p)
	if err != nil {
		return "", err
	}
	if !raw {
		value = flow(value)
	}
	var next string
	if len(way) == len(p) {
		next = d.splice(way[len(way)-1], value)
	} else {
		next = d.add(p, way, value)
	}
	return next, d.check(next, p, value, true)
}

func (d *yamlDocument) splice(k yamlKey, value string) string {
	if strings.Trim(d.text[k.valueAt-1:k.valueAt], " ") != "" && value != "" && value[0] != '\n' {
		value = " " + value
	}
	return d.text[:k.valueAt] + value + d.text[k.valueTo:]
}

func (d *yamlDocument) add(p Path, way []yamlKey, value string) string {
	text, indent := d.text, 0
	var at int
	switch {
	case len(way) == 0 && len(d.keys) > 0:
		last := d.keys[len(d.keys)-1]
		indent, at = last.indent, lineEnd(text, last.valueTo)
	case len(way) == 0:
		text = strings.TrimSuffix(text, "\n")
		at = len(text)
	default:
		k := way[len(way)-1]
		indent = k.indent + 2
		if d.hollowKey(k) {
			head := strings.TrimRight(text[:k.valueAt], " ")
			text = head + text[k.valueTo:]
			at = lineEnd(text, len(head))
			break
		}
		below, _ := d.mapping(k.body, k.valueTo)
		indent, at = below[0].indent, lineEnd(text, k.valueTo)
	}
	entry := ""
	if at > 0 {
		entry = "\n"
	}
	for i := len(way); i < len(p); i++ {
		entry += strings.Repeat(" ", indent) + p[i] + ":\n"
		indent += 2
	}
	entry = strings.TrimSuffix(entry, "\n") + " " + value
	if rest := text[at:]; rest != "" {
		return text[:at] + entry + rest
	}
	return text[:at] + entry + "\n"
}

// flow converts JSON to YAML as people write it on one line: a space follows : and ,.
func flow(value string) string {
	var b strings.Builder
	for i := 0; i < len(value); i++ {
		c := value[i]
		b.WriteByte(c)
		switch c {
		case '"':
			end := i + 1
			for value[end] != '"' {
				if value[end] == '\\' {
					end++
				}
				end++
			}
			b.WriteString(value[i+1 : end+1])
			i = end
		case ':', ',':
			b.WriteByte(' ')
		}
	}
	return b.String()
}

func (d *yamlDocument) remove(p Path) (string, error) {
	way, err := d.find(p)
	if err != nil || len(way) < len(p) {
		return d.text, err
	}
	k := way[len(way)-1]
	next := d.text[:k.start] + d.text[min(lineEnd(d.text, k.valueTo)+1, len(d.text)):]
	if len(way) > 1 {
		above := way[len(way)-2]
		if below, err := d.mapping(above.body, above.valueTo); err == nil && len(below) == 1 {
			next = next[:above.valueAt] + " {}" + next[above.valueAt:]
		}
	}
	return next, d.check(next, p, "", false)
}

// check returns an error unless next differs from the document only in p: it has the value, or there is none.
func (d *yamlDocument) check(next string, p Path, value string, there bool) error {
	before, err := decodeYAML(d.text)
	if err != nil {
		return err
	}
	after, err := decodeYAML(next)
	if err != nil {
		return fmt.Errorf("the result could not be read: %w", err)
	}
	at := before
	for _, name := range p[:len(p)-1] {
		below, _ := at[name].(map[string]any)
		below = maps.Clone(below)
		if below == nil {
			below = map[string]any{}
		}
		at[name], at = below, below
	}
	delete(at, p[len(p)-1])
	if there {
		v, err := decodeYAML("x: " + value)
		if err != nil {
			return err
		}
		at[p[len(p)-1]] = v["x"]
	}
	if !reflect.DeepEqual(before, after) {
		return fmt.Errorf("%s is written in a form that is not changed here", p)
	}
	return nil
}

func canonicalYAML(raw string) (string, error) {
	v, err := decodeYAML("x: " + raw)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(v["x"])
	return string(text), err
}
