package argument

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/toold/toold/internal/redact"
	"github.com/toold/toold/internal/spell"
	"github.com/toold/toold/internal/strict"
)

// Decode reads the arguments of a call into a T, a struct in which every exported field has these
// tags:
//
//	json:"command"    the argument's exact name
//	alias:"cmd,foo"   other names
//	required:"true"   must be present
//	enum:"a|b"        the only values
//	ignored:"true"    accepted with any value; json.RawMessage keeps it
//
// Field types are string, bool, int64, pointers to them (nil: absent), structs (embedded, too), and
// slices of strings, int64 and structs.
//
// Decode rejects what readers understand differently (repeated keys, other case, unknown keys,
// trailing data, broken escapes). Null for an optional argument means absent, and two names of one
// argument may repeat its value. An integer has digits only.
//
// Every fault of the caller is an *Error; the value is zero then.
func Decode[T any](args json.RawMessage) (T, error) {
	var v, zero T
	members, err := Object(args)
	if err != nil {
		return zero, err
	}
	if err := fill(reflect.ValueOf(&v).Elem(), members); err != nil {
		return zero, err
	}
	return v, nil
}

type argument struct {
	name     string
	names    []string // including aliases
	required bool
	ignored  bool
	enum     []string
	index    []int
	given    string // the name used by the call; "" if absent
}

func fill(dst reflect.Value, members []strict.Member) error {
	arguments := argumentsOf(dst.Type())
	for _, m := range members {
		i := slices.IndexFunc(arguments, func(a *argument) bool { return slices.Contains(a.names, m.Name) })
		if i < 0 {
			return unknownArgument(arguments, m.Name)
		}
		a := arguments[i]
		if err := a.set(dst.FieldByIndex(a.index), m); err != nil {
			return err
		}
	}
	for _, a := range arguments {
		if a.required && a.given == "" {
			return &Error{Field: a.name, Problem: "missing; it is required"}
		}
	}
	return nil
}

func argumentsOf(t reflect.Type) []*argument {
	var list []*argument
	for _, field := range reflect.VisibleFields(t) {
		if field.Anonymous {
			continue
		}
		tag := field.Tag
		a := &argument{
			name:     tag.Get("json"),
			required: tag.Get("required") == "true",
			ignored:  tag.Get("ignored") == "true",
			index:    field.Index,
		}
		a.names = []string{a.name}
		if alias := tag.Get("alias"); alias != "" {
			a.names = append(a.names, strings.Split(alias, ",")...)
		}
		if enum := tag.Get("enum"); enum != "" {
			a.enum = strings.Split(enum, "|")
		}
		list = append(list, a)
	}
	return list
}

func (a *argument) set(field reflect.Value, m strict.Member) error {
	if !a.required && string(m.Value) == "null" && !a.ignored {
		return nil
	}
	value := reflect.New(field.Type()).Elem()
	if err := a.parse(value, m); err != nil {
		return err
	}
	if a.given != "" && !reflect.DeepEqual(field.Interface(), value.Interface()) {
		return &Error{Field: m.Name, Problem: fmt.Sprintf("contradicts %q, another name of the same argument; send only %q", a.given, a.name)}
	}
	field.Set(value)
	a.given = m.Name
	return nil
}

func (a *argument) parse(dst reflect.Value, m strict.Member) error {
	if a.ignored {
		if dst.Type() == reflect.TypeFor[json.RawMessage]() {
			dst.SetBytes(m.Value)
		}
		return nil
	}
	if dst.Kind() == reflect.Pointer {
		dst.Set(reflect.New(dst.Type().Elem()))
		dst = dst.Elem()
	}
	switch dst.Kind() {
	case reflect.String:
		return a.parseString(dst, m)
	case reflect.Bool:
		return parseBool(dst, m)
	case reflect.Int64:
		return parseInt(dst, m)
	case reflect.Struct:
		return parseObject(dst, m)
	case reflect.Slice:
		return a.parseSlice(dst, m)
	default:
		return fmt.Errorf("cannot decode argument %q: fields of type %v are not supported", m.Name, dst.Type())
	}
}

func (a *argument) parseString(dst reflect.Value, m strict.Member) error {
	if kind(m.Value) != "a string" {
		return wrongType(m, "a string")
	}
	s := strict.Text(m.Value)
	if a.enum != nil && !slices.Contains(a.enum, s) {
		return &Error{Field: m.Name, Problem: fmt.Sprintf("%q is not one of %s", s, strings.Join(a.enum, ", "))}
	}
	dst.SetString(s)
	return nil
}

func (a *argument) parseSlice(dst reflect.Value, m strict.Member) error {
	values, err := strict.Array(m.Value, math.MaxInt)
	if err != nil {
		of := map[reflect.Kind]string{reflect.String: "strings", reflect.Int64: "integers", reflect.Struct: "objects"}
		return wrongType(m, "an array of "+of[dst.Type().Elem().Kind()])
	}
	dst.Set(reflect.MakeSlice(dst.Type(), len(values), len(values)))
	for i, value := range values {
		if err := a.parse(dst.Index(i), strict.Member{Name: fmt.Sprintf("%s[%d]", m.Name, i), Value: value}); err != nil {
			return err
		}
	}
	return nil
}

func parseObject(dst reflect.Value, m strict.Member) error {
	members, err := Object(m.Value)
	if err == nil {
		err = fill(dst, members)
	}
	if fault, is := errors.AsType[*Error](err); is {
		fault.Field = strings.TrimSuffix(m.Name+"."+fault.Field, ".")
	}
	return err
}

func parseBool(dst reflect.Value, m strict.Member) error {
	switch string(m.Value) {
	case "true":
		dst.SetBool(true)
	case "false":
	default:
		return wrongType(m, "true or false")
	}
	return nil
}

func parseInt(dst reflect.Value, m strict.Member) error {
	if kind(m.Value) != "a number" {
		return wrongType(m, "an integer")
	}
	if strings.ContainsAny(string(m.Value), ".eE") {
		return &Error{Field: m.Name, Problem: fmt.Sprintf("%s is not an integer written in digits", shorten(string(m.Value)))}
	}
	n, err := strconv.ParseInt(string(m.Value), 10, 64)
	if err != nil {
		return &Error{Field: m.Name, Problem: shorten(string(m.Value)) + " is too large"}
	}
	dst.SetInt(n)
	return nil
}

func wrongType(m strict.Member, want string) error {
	return &Error{Field: m.Name, Problem: fmt.Sprintf("expected %s, got %s", want, kind(m.Value))}
}

func shorten(s string) string { return redact.Short(s, 64) }

func unknownArgument(arguments []*argument, name string) error {
	var own, all []string
	for _, a := range arguments {
		own, all = append(own, a.name), append(all, a.names...)
	}
	hint := ""
	if near := spell.Nearest(shorten(name), all); near != "" {
		hint = fmt.Sprintf("did you mean %q? ", near)
		if strings.EqualFold(near, name) {
			hint += "Names are case-sensitive. "
		}
	}
	return &Error{Field: shorten(name), Problem: "unknown argument; " + hint + "The arguments are " + strings.Join(own, ", ")}
}
