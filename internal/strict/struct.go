package strict

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
)

const maxDepth = 512

// ErrTwice is wrapped if an object has two members with the same name, which readers interpret differently.
var ErrTwice = errors.New("is there twice")

// Unmarshal is json.Unmarshal, except that names must match exactly those of a struct's fields, and of the fields in
// its structs and slices. Like json.Unmarshal, it continues after a value of a wrong type. It does not check inside
// of values of other types.
func Unmarshal(text []byte, into any) error {
	if !Valid(text, maxDepth) {
		return errors.New("it is not one JSON value in UTF-8")
	}
	return unmarshal(text, reflect.ValueOf(into).Elem())
}

func unmarshal(text json.RawMessage, v reflect.Value) error {
	switch isNull := text[0] == 'n'; {
	case isNull || v.Type() == reflect.TypeFor[json.RawMessage]():
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return unmarshal(text, v.Elem())
	case v.Kind() == reflect.Slice:
		return unmarshalArray(text, v)
	case v.Kind() == reflect.Struct:
		return unmarshalObject(text, v)
	}
	return json.Unmarshal(text, v.Addr().Interface())
}

func unmarshalArray(text json.RawMessage, v reflect.Value) (err error) {
	elements, err := Array(text, math.MaxInt)
	v.Set(reflect.MakeSlice(v.Type(), len(elements), len(elements)))
	for i, e := range elements {
		err = errors.Join(err, unmarshal(e, v.Index(i)))
	}
	return err
}

func unmarshalObject(text json.RawMessage, v reflect.Value) (err error) {
	members, err := Object(text, math.MaxInt)
	byName := make(map[string]json.RawMessage, len(members))
	for _, m := range members {
		if _, twice := byName[m.Name]; twice {
			err = errors.Join(err, fmt.Errorf("%.80q %w", m.Name, ErrTwice))
		}
		byName[m.Name] = m.Value
	}
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if value, ok := byName[name]; ok && name != "" {
			if wrong := unmarshal(value, v.Field(i)); wrong != nil {
				err = errors.Join(err, fmt.Errorf("%s: %w", name, wrong))
			}
		}
	}
	return err
}
