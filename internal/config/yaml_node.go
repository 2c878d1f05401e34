package config

import (
	"reflect"
	"strconv"

	"github.com/goccy/go-yaml/ast"
)

type taggedField struct {
	reflect.Value
	reflect.StructTag
}

func fieldsOf(v reflect.Value) map[string]taggedField {
	fields := make(map[string]taggedField)
	for _, f := range reflect.VisibleFields(v.Type()) {
		if key := f.Tag.Get("yaml"); key != "" {
			fields[key] = taggedField{v.FieldByIndex(f.Index), f.Tag}
		}
	}
	return fields
}

func setPosition(v reflect.Value, at position) {
	if f := v.FieldByName("At"); f.IsValid() && f.Type() == reflect.TypeFor[position]() {
		f.Set(reflect.ValueOf(at))
	}
}

// place is where a struct was read. The decoder sets fields "At" of this type, and keeps structs that have one in lists
// in spite of their faults.
type place struct {
	position
	path   string
	faulty bool
}

// placeIn returns the place of a struct, or nil if it has none.
func placeIn(v reflect.Value) *place {
	if v.Kind() != reflect.Struct {
		return nil
	}
	f := v.FieldByName("At")
	if !f.IsValid() || f.Type() != reflect.TypeFor[place]() {
		return nil
	}
	return f.Addr().Interface().(*place)
}

// positionOf returns the position where a node begins; a mapping begins at its first key.
func positionOf(n ast.Node) position {
	switch m := n.(type) {
	case *ast.MappingNode:
		if !m.IsFlowStyle && len(m.Values) > 0 {
			return positionOf(m.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return positionOf(m.Key)
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		return position{t.Position.Line, t.Position.Column}
	}
	return position{1, 1}
}

func scalarText(n ast.Node) (string, bool) {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	}
	return stringText(n)
}

func stringText(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	}
	return "", false
}

// keyText returns a key without quotes, since JSON is YAML.
func keyText(n ast.MapKeyNode) string {
	if s, ok := n.(*ast.StringNode); ok {
		return s.Value
	}
	return n.String()
}

func isEmpty(n ast.Node) bool {
	seq, isList := n.(*ast.SequenceNode)
	_, isNull := n.(*ast.NullNode)
	return isNull || isList && len(seq.Values) == 0
}

func kindOf(n ast.Node) string {
	switch n.(type) {
	case *ast.NullNode:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "keys with values"
	case *ast.SequenceNode:
		return "a list"
	}
	return strconv.Quote(n.GetToken().Value)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
