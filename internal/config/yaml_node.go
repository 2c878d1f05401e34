package config

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// What the decoder needs to know of structs and of the syntax tree.

func fieldsOf(v reflect.Value) map[string]reflect.Value {
	fields := make(map[string]reflect.Value)
	for i := range v.NumField() {
		key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		if key != "" && key != "-" {
			fields[key] = v.Field(i)
		}
	}
	return fields
}

// setPlace records where a struct stands, if it wants to know.
func setPlace(v reflect.Value, at place) {
	for i := range v.NumField() {
		if v.Field(i).Type() == reflect.TypeFor[place]() {
			v.Field(i).Set(reflect.ValueOf(at))
		}
	}
}

// placeOf returns where a node begins; a mapping begins at its first key.
func placeOf(n ast.Node) place {
	switch m := n.(type) {
	case *ast.MappingNode:
		if !m.IsFlowStyle && len(m.Values) > 0 {
			return placeOf(m.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return placeOf(m.Key)
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		return place{t.Position.Line, t.Position.Column}
	}
	return place{1, 1}
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

// kindOf names a node in words of the person who wrote it.
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
