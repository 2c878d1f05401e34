package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/toold/toold/policy"
)

// EditPolicy makes changes to the text of a policy file, each with note as a comment. It parses the result and
// returns an error if it differs from what the changes mean. name is the file's name in messages. The pieces are for
// UndoPolicy.
func EditPolicy(name string, src []byte, changes []policy.Change, note string) ([]byte, []Piece, error) {
	before, err := parsePolicy(name, src, policy.Ask, caseAuto)
	if err != nil {
		return nil, nil, err
	}
	want, out := before.file, src
	var pieces []Piece
	for _, c := range changes {
		e := &editor{decoder: decoder{file: name, lines: linesOf(out)}, src: string(out), note: note}
		if err := e.make(c); err != nil {
			return nil, nil, fmt.Errorf("cannot write the change into %s: %w; add it yourself: %s", name, err, c.Text(name))
		}
		out, pieces = []byte(e.src), append(pieces, e.pieces...)
		want = want.With(c)
	}
	after, err := parsePolicy(name, out, policy.Ask, caseAuto)
	if err == nil && !sameMeaning(want, after.file) {
		err = errors.New("the edit would change more than it should")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cannot write the change into %s: %w; add it yourself", name, err)
	}
	return out, pieces, nil
}

// A Piece is a text that EditPolicy inserted. Before is the text that precedes it on its line.
type Piece struct {
	Before string `json:"before,omitempty"`
	Text   string `json:"text"`
}

// UndoPolicy removes pieces from a policy file. It returns an error unless the result means src without the changes.
func UndoPolicy(name string, src []byte, changes []policy.Change, pieces []Piece) ([]byte, error) {
	now, err := parsePolicy(name, src, policy.Ask, caseAuto)
	if err != nil {
		return nil, err
	}
	out := string(src)
	for _, p := range slices.Backward(pieces) {
		whole := p.Before + p.Text
		if strings.Count(out, whole) != 1 {
			return nil, fmt.Errorf("%s was changed where this was added; take it out yourself: %s", name, strings.TrimSpace(p.Text))
		}
		out = strings.Replace(out, whole, p.Before, 1)
	}
	then, err := parsePolicy(name, []byte(out), policy.Ask, caseAuto)
	if err != nil {
		return nil, err
	}
	want := then.file
	for _, c := range changes {
		want = want.With(c)
	}
	if !sameMeaning(want, now.file) {
		return nil, fmt.Errorf("%s was changed since; take out yourself what was added", name)
	}
	return []byte(out), nil
}

// sameMeaning compares two files, ignoring the order and lines of rules.
func sameMeaning(a, b policy.File) bool { return reflect.DeepEqual(normalized(a), normalized(b)) }

func normalized(f policy.File) policy.File {
	f.Lines = nil
	for _, list := range []*[]policy.Rule{&f.Commands, &f.Paths, &f.Net} {
		*list = append([]policy.Rule{}, *list...)
		for i := range *list {
			(*list)[i].Line, (*list)[i].Except = 0, sorted((*list)[i].Except)
		}
		slices.SortFunc(*list, func(a, b policy.Rule) int { return strings.Compare(a.ID, b.ID) })
	}
	f.Env, f.Disable = sorted(f.Env), sorted(f.Disable)
	return f
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// editor inserts texts into a policy file at positions of its syntax tree.
type editor struct {
	decoder
	src    string
	note   string
	pieces []Piece
}

func (e *editor) make(c policy.Change) error {
	root, err := e.parse([]byte(e.src))
	if err != nil {
		return err
	}
	switch c.Section {
	case "commands", "paths", "net":
		return e.add(root, root, c.Section, []string{c.Rule.String()})
	case "except":
		rule := e.rule(root, c.At)
		if rule == nil {
			return fmt.Errorf("it has no rule %q", c.At)
		}
		return e.add(root, rule, "except", quotedTexts(c.Texts))
	case "env.allow":
		env := e.valueOf(root, "env")
		if env == nil {
			return e.append("env:", "  ", "allow: ["+strings.Join(quotedTexts(c.Texts), ", ")+"]")
		}
		return e.add(root, env, "allow", quotedTexts(c.Texts))
	}
	return fmt.Errorf("%s is not changed for a single call", c.Section)
}

func quotedTexts(texts []string) (list []string) {
	for _, t := range texts {
		list = append(list, fmt.Sprintf("%q", t))
	}
	return list
}

func (e *editor) valueOf(n ast.Node, key string) ast.Node {
	entry := e.entry(n, key)
	if entry == nil {
		return nil
	}
	return entry.Value
}

func (e *editor) entry(n ast.Node, key string) *ast.MappingValueNode {
	entries, err := e.entries(n, "")
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		if text, _ := stringText(entry.Key); text == key {
			return entry
		}
	}
	return nil
}

func (e *editor) rule(root ast.Node, id string) ast.Node {
	for _, section := range []string{"commands", "paths", "net"} {
		list, ok := e.valueOf(root, section).(*ast.SequenceNode)
		if !ok {
			continue
		}
		for _, item := range list.Values {
			if text, _ := stringText(e.valueOf(item, "id")); text == id {
				return item
			}
		}
	}
	return nil
}

// add prepends items to the list at key, or adds the list.
func (e *editor) add(root, mapping ast.Node, key string, items []string) error {
	entry := e.entry(mapping, key)
	if entry == nil {
		return e.addList(root, mapping, key, items)
	}
	at := positionOf(entry.Key)
	list, ok := entry.Value.(*ast.SequenceNode)
	switch {
	case !ok && !e.blank(at):
		return fmt.Errorf("%s is no list", key)
	case !ok:
		if e.inFlow(root, mapping) {
			return e.inside(root, at, ":", " ["+strings.Join(items, ", ")+"]")
		}
		return e.below(at, strings.Repeat(" ", at.column+1), "- ", items)
	case list.IsFlowStyle:
		text := strings.Join(items, ", ")
		if len(list.Values) > 0 {
			text += ", "
		}
		return e.inside(root, positionOf(list), "[", text)
	}
	return e.below(at, strings.Repeat(" ", positionOf(list).column-1), "- ", items)
}

// blank reports whether a key's line ends after it.
func (e *editor) blank(key position) bool {
	rest, _, _ := strings.Cut(e.after(key, ":"), "\n")
	rest = strings.TrimSpace(strings.TrimPrefix(rest, ":"))
	return rest == "" || rest[0] == '#'
}

func (e *editor) addList(root, mapping ast.Node, key string, items []string) error {
	text := key + ": [" + strings.Join(items, ", ") + "]"
	entries, err := e.entries(mapping, "")
	if err != nil {
		return err
	}
	flow, isFlow := mapping.(*ast.MappingNode)
	switch {
	case isFlow && flow.IsFlowStyle:
		if len(entries) > 0 {
			text += ", "
		}
		return e.inside(root, positionOf(mapping), "{", text)
	case mapping == root:
		return e.append(key+":", "  ", "- "+strings.Join(items, "\n  - "))
	}
	for _, entry := range entries {
		at := positionOf(entry.Key)
		if _, single := entry.Value.(*ast.StringNode); single && positionOf(entry.Value).line == at.line {
			return e.below(at, strings.Repeat(" ", at.column-1), "", []string{text})
		}
	}
	return fmt.Errorf("no place for %s", key)
}

func (e *editor) inFlow(root, mapping ast.Node) bool {
	for _, n := range []ast.Node{root, mapping} {
		if m, ok := n.(*ast.MappingNode); ok && m.IsFlowStyle {
			return true
		}
	}
	return false
}

func (e *editor) newline() string {
	if strings.Contains(e.src, "\r\n") {
		return "\r\n"
	}
	return "\n"
}

func (e *editor) append(key, indent, text string) error {
	lines := []string{key, indent + "# " + e.note, indent + text, ""}
	if e.src != "" && !strings.HasSuffix(e.src, "\n") {
		lines = append([]string{""}, lines...)
	}
	e.insert(len(e.src), strings.Join(lines, e.newline()))
	return nil
}

func (e *editor) below(at position, indent, mark string, items []string) error {
	lines := indent + "# " + e.note + e.newline()
	for _, item := range items {
		lines += indent + mark + item + e.newline()
	}
	end := e.offset(position{at.line + 1, 1})
	if end == len(e.src) && !strings.HasSuffix(e.src, "\n") {
		lines = e.newline() + strings.TrimSuffix(lines, e.newline())
	}
	e.insert(end, lines)
	return nil
}

// inside inserts text after the next mark, and the note above.
func (e *editor) inside(root ast.Node, at position, mark, text string) error {
	rest := e.after(at, mark)
	if rest == "" {
		return fmt.Errorf("no %q at line %d", mark, at.line)
	}
	e.insert(len(e.src)-len(rest)+len(mark), text)
	top := position{1, 1}
	if m, ok := root.(*ast.MappingNode); !ok || !m.IsFlowStyle {
		entries, err := e.entries(root, "")
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if p := positionOf(entry.Key); p.line <= at.line {
				top = p
			}
		}
	}
	e.insert(e.offset(position{top.line, 1}), "# "+e.note+e.newline())
	return nil
}

// after returns the text of the file from the next mark at or after a position, or "".
func (e *editor) after(at position, mark string) string {
	rest := e.src[e.offset(at):]
	i := strings.Index(rest, mark)
	if i < 0 {
		return ""
	}
	return rest[i:]
}

func (e *editor) offset(at position) int {
	n := 0
	for i, line := range e.lines {
		if i+1 < at.line {
			n += len(line) + 1
			continue
		}
		runes := []rune(line)
		return n + len(string(runes[:min(at.column-1, len(runes))]))
	}
	return min(n, len(e.src))
}

func (e *editor) insert(at int, text string) {
	line := strings.LastIndexByte(e.src[:at], '\n') + 1
	e.pieces = append(e.pieces, Piece{Before: e.src[line:at], Text: text})
	e.src = e.src[:at] + text + e.src[at:]
}
