package config

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/toold/toold/internal/spell"
)

const maxSource = 4 << 20

// The parser is recursive: maxNesting limits brackets, maxLine indentation in bytes.
const (
	maxNesting = 32
	maxLine    = 4096
)

// position is a line and column in a file, from 1. The decoder sets struct fields of this type.
type position struct{ line, column int }

// decode reads one YAML document into a struct, by yaml tags: structs, slices, maps, strings, booleans, integers
// and encoding.TextUnmarshalers. Unknown and repeated keys, other types, anchors, aliases, tags and further
// documents are errors of type *Error. What is not in the source keeps its value in dst. With an error, dst has what
// is without a fault, lists without the items that have one.
func (d *decoder) decode(src []byte, dst any) error {
	root, err := d.parse(src)
	if err != nil || root == nil {
		d.note(err)
		return err
	}
	d.note(d.value(root, reflect.ValueOf(dst).Elem(), ""))
	return d.failed()
}

// maxFaults are reported of a file.
const maxFaults = 50

// note keeps the fault of a part, after which the next part is decoded.
func (d *decoder) note(err error) {
	if err == nil {
		return
	}
	if d.count++; d.count <= maxFaults {
		d.faults = append(d.faults, err)
	}
}

// failed returns the faults that were noted; nil if there are none.
func (d *decoder) failed() error {
	if more := d.count - len(d.faults); more > 0 {
		return errors.Join(append(slices.Clone(d.faults), fmt.Errorf("%s: faults that are not shown: %d", d.file, more))...)
	}
	return errors.Join(d.faults...)
}

type decoder struct {
	file  string
	lines []string
	texts []text // decoded so far

	faults []error // the first ones
	count  int     // of all

	words []string // of the tag oneof of the field that is decoded
}

type text struct {
	path string // path of keys, such as commands[0].run[1]
	text string
	at   position
}

// parse returns the root node, or nil for an empty document.
func (d *decoder) parse(src []byte) (root ast.Node, err error) {
	if len(src) > maxSource {
		return nil, d.errorAt(position{1, 1}, "the file is larger than %d bytes", maxSource)
	}
	// If the parser panics on a malicious file, that is a fault of the file.
	defer func() {
		if r := recover(); r != nil {
			root, err = nil, d.errorAt(position{1, 1}, "cannot parse: %v", r)
		}
	}()
	if err := d.checkLines(); err != nil {
		return nil, err
	}
	tokens := lexer.Tokenize(strings.TrimPrefix(string(src), "\ufeff")) // byte order mark
	if err := d.checkNesting(tokens); err != nil {
		return nil, err
	}
	f, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, d.syntaxError(err)
	}
	docs := slices.DeleteFunc(f.Docs, func(doc *ast.DocumentNode) bool { return doc.Body == nil })
	if len(docs) == 0 {
		return nil, nil
	}
	if len(docs) > 1 {
		return nil, d.errorAt(positionOf(docs[1].Body), "a second document: expected one document only")
	}
	return docs[0].Body, nil
}

// checkLines rejects lines with which block collections could nest too deeply.
func (d *decoder) checkLines() error {
	for i, line := range d.lines {
		if len(line) > maxLine {
			return d.errorAt(position{i + 1, 1}, "the line is longer than %d bytes", maxLine)
		}
	}
	return nil
}

func (d *decoder) checkNesting(tokens token.Tokens) error {
	depth := 0
	for _, t := range tokens {
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		}
		if depth > maxNesting {
			return d.errorAt(position{t.Position.Line, t.Position.Column}, "nested too deeply")
		}
	}
	return nil
}

func (d *decoder) syntaxError(err error) error {
	at := position{1, 1}
	message := err.Error()
	if e, ok := err.(interface {
		GetMessage() string
		GetToken() *token.Token
	}); ok {
		message = e.GetMessage()
		if t := e.GetToken(); t != nil && t.Position != nil {
			at = position{t.Position.Line, t.Position.Column}
		}
	}
	return d.errorAt(at, "not valid YAML: %s", message)
}

// value decodes n into v. path is its name in messages.
func (d *decoder) value(n ast.Node, v reflect.Value, path string) error {
	if err := d.refuseIndirection(n); err != nil {
		return err
	}
	if v.Type() == reflect.TypeFor[unsupported]() {
		return d.errorAt(positionOf(n), "%s is not supported in this version: remove it, or use a version that does", path)
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return d.text(n, u, path)
	}
	switch v.Kind() {
	case reflect.Struct:
		return d.object(n, v, path)
	case reflect.Slice:
		return d.list(n, v, path)
	case reflect.Map:
		return d.dictionary(n, v, path)
	default:
		return d.scalar(n, v, path)
	}
}

// refuseIndirection rejects anchors, aliases and tags, with which a file can mean more than it shows.
func (d *decoder) refuseIndirection(n ast.Node) error {
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		return d.errorAt(positionOf(n), "anchors and aliases are not supported: write the value out")
	case *ast.TagNode, *ast.DirectiveNode:
		return d.errorAt(positionOf(n), "tags and directives are not supported")
	}
	return nil
}

func (d *decoder) object(n ast.Node, v reflect.Value, path string) error {
	setPosition(v, positionOf(n))
	entries, err := d.entries(n, path)
	if err != nil {
		return err
	}
	before, fields := d.count, fieldsOf(v)
	for _, e := range entries {
		key, at := keyText(e.Key), positionOf(e.Key)
		field, ok := fields[key]
		if !ok {
			known := maps.Clone(fields)
			maps.DeleteFunc(known, func(_ string, f taggedField) bool { return f.Type() == reflect.TypeFor[unsupported]() })
			d.note(d.unknownKey(key, at, slices.Collect(maps.Keys(known)), path))
			continue
		}
		d.words = strings.Fields(field.Get("oneof"))
		err := d.value(e.Value, field.Value, join(path, key))
		if field.Get("empty") == "no" && isEmpty(e.Value) {
			err = d.errorAt(at, "%s is empty: leave the key out if the rule has no such limit", join(path, key))
		}
		d.note(err)
	}
	if at := placeIn(v); at != nil {
		*at = place{positionOf(n), path, d.count > before}
	}
	return nil
}

func (d *decoder) entries(n ast.Node, path string) ([]*ast.MappingValueNode, error) {
	var entries []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.NullNode:
		return nil, nil
	case *ast.MappingNode:
		entries = n.Values
	case *ast.MappingValueNode:
		entries = []*ast.MappingValueNode{n}
	default:
		return nil, d.wrongType(n, path, "keys with values")
	}
	for _, e := range entries {
		switch k := e.Key.(type) {
		case *ast.StringNode, *ast.IntegerNode, *ast.BoolNode:
		default:
			return nil, d.errorAt(positionOf(k), "expected a plain key")
		}
	}
	return entries, nil
}

func (d *decoder) list(n ast.Node, v reflect.Value, path string) error {
	if _, ok := n.(*ast.NullNode); ok {
		return nil
	}
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		return d.wrongType(n, path, "a list")
	}
	out := reflect.MakeSlice(v.Type(), 0, len(seq.Values))
	for i, of := range seq.Values {
		item, before := reflect.New(v.Type().Elem()).Elem(), d.count
		err := d.value(of, item, fmt.Sprintf("%s[%d]", path, i))
		d.note(err)
		kept := err == nil && placeIn(item) != nil
		if kept || d.count == before {
			out = reflect.Append(out, item)
		}
	}
	v.Set(out)
	return nil
}

func (d *decoder) dictionary(n ast.Node, v reflect.Value, path string) error {
	entries, err := d.entries(n, path)
	if err != nil {
		return err
	}
	out := reflect.MakeMap(v.Type())
	for _, e := range entries {
		s, ok := e.Key.(*ast.StringNode)
		if !ok {
			d.note(d.errorAt(positionOf(e.Key), "expected text as a key: put %s in quotes", e.Key.String()))
			continue
		}
		key := s.Value
		item := reflect.New(v.Type().Elem()).Elem()
		d.note(d.value(e.Value, item, join(path, key)))
		out.SetMapIndex(reflect.ValueOf(key), item)
	}
	v.Set(out)
	return nil
}

func (d *decoder) text(n ast.Node, u encoding.TextUnmarshaler, path string) error {
	s, ok := scalarText(n)
	if !ok {
		return d.wrongType(n, path, "one value")
	}
	if err := u.UnmarshalText([]byte(s)); err != nil {
		return d.errorAt(positionOf(n), "%s: %v", path, err)
	}
	if v := reflect.ValueOf(u).Elem(); v.Kind() == reflect.Struct {
		setPosition(v, positionOf(n))
	}
	return nil
}

func (d *decoder) scalar(n ast.Node, v reflect.Value, path string) error {
	switch {
	case v.Kind() == reflect.String && len(d.words) > 0:
		s, ok := scalarText(n)
		if !ok {
			return d.wrongType(n, path, "one value")
		}
		if err := oneOf(d.words[0], []byte(s), d.words[1:]); err != nil {
			return d.errorAt(positionOf(n), "%s: %v", path, err)
		}
		v.SetString(s)
	case v.Kind() == reflect.String:
		s, ok := stringText(n)
		if !ok {
			return d.wrongType(n, path, "text (put it in quotes)")
		}
		v.SetString(s)
		d.texts = append(d.texts, text{path, s, positionOf(n)})
	case v.Kind() == reflect.Bool:
		b, ok := n.(*ast.BoolNode)
		if !ok {
			return d.wrongType(n, path, "true or false")
		}
		v.SetBool(b.Value)
	case v.CanInt():
		return d.integer(n, v, path)
	default:
		return d.errorAt(positionOf(n), "%s cannot be set in a file", path)
	}
	return nil
}

func (d *decoder) integer(n ast.Node, v reflect.Value, path string) error {
	if _, ok := n.(*ast.IntegerNode); !ok {
		return d.wrongType(n, path, "a whole number")
	}
	s := n.GetToken().Value
	i, err := strconv.ParseInt(s, 10, v.Type().Bits())
	v.SetInt(i)
	if err != nil {
		return d.errorAt(positionOf(n), "%s: %s is not a decimal whole number in range", path, s)
	}
	return nil
}

func (d *decoder) unknownKey(key string, at position, known []string, path string) error {
	slices.Sort(known)
	if path != "" {
		path = " in " + path
	}
	if near := spell.Nearest(key, known); near != "" {
		return d.errorAt(at, "unknown key %q%s: did you mean %q?", key, path, near)
	}
	return d.errorAt(at, "unknown key %q%s: expected one of %s", key, path, strings.Join(known, ", "))
}

func (d *decoder) wrongType(n ast.Node, path, expected string) error {
	if path == "" {
		path = "the file"
	}
	return d.errorAt(positionOf(n), "%s: expected %s, found %s", path, expected, kindOf(n))
}

func (d *decoder) errorAt(at position, format string, args ...any) *Error {
	return newError(d.file, d.lines, at, fmt.Sprintf(format, args...))
}
