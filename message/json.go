package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/strict"
)

// Limits of a frame, so that a small frame cannot need much memory. The arguments of calls are not split, so only
// maxDepth applies to them.
const (
	maxDepth    = 512  // nested arrays and objects
	maxMembers  = 256  // of one object outside of arguments
	maxElements = 1024 // of one array outside of arguments
)

// checkFrame verifies that frame is one JSON value. The other functions of this file require that.
func checkFrame(frame []byte) error {
	switch {
	case strict.Valid(frame, maxDepth):
		return nil
	case !utf8.Valid(frame):
		return errors.New("the frame is not valid UTF-8")
	case strict.TooDeep(frame, maxDepth):
		return fmt.Errorf("the frame is nested deeper than %d levels", maxDepth)
	}
	var syntax *json.SyntaxError
	if err := json.Unmarshal(frame, &struct{}{}); errors.As(err, &syntax) {
		return fmt.Errorf("the frame is not valid JSON: %v at byte %d", syntax, syntax.Offset)
	}
	return errors.New("the frame is not valid JSON")
}

type object []strict.Member

// get returns the first member with exactly this name. A null member counts as absent.
func (o object) get(key string) (json.RawMessage, bool) {
	for _, m := range o {
		if m.Name == key {
			return m.Value, string(m.Value) != "null"
		}
	}
	return nil, false
}

func (o object) duplicates() (names []string) {
	seen := make(map[string]bool, len(o))
	for _, m := range o {
		if seen[m.Name] {
			names = append(names, m.Name)
		}
		seen[m.Name] = true
	}
	return names
}

func splitObject(raw json.RawMessage) (object, error) { return strict.Object(raw, maxMembers) }

func splitArray(raw json.RawMessage) ([]json.RawMessage, error) {
	return strict.Array(raw, maxElements)
}

// unquote returns the content of a JSON string. It rejects a lone surrogate, which encoding/json replaces but other
// parsers keep.
func unquote(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", errors.New("must be a string")
	}
	if strict.Ambiguous(raw, false) != "" {
		return "", errors.New("contains half of a surrogate pair")
	}
	return strict.Text(raw), nil
}

// sameJSON compares two arguments, and ignores white space between tokens.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	return validArguments(a) && validArguments(b) && bytes.Equal(strict.Compact(nil, a), strict.Compact(nil, b))
}

// validArguments reports whether arguments are JSON. checkFrame does not look into arguments sent as a string.
func validArguments(text []byte) bool { return strict.Valid(text, maxDepth) }

// MaxID is the maximum length of identifiers, in bytes. They are the fields tagged wire:"id".
const MaxID = 256

type fault struct {
	field     string // its path in the frame
	text      string // the sentence without its subject
	duplicate bool   // the field occurs twice
}

// String formats the fault. It quotes a name that is long or not printable.
func (f fault) String() string {
	name := f.field
	if len(name) > 80 || !IsID(name) {
		name = fmt.Sprintf("%.80q", name)
	}
	return name + " " + f.text
}

func sentence(faults []fault) string {
	var texts []string
	for i, f := range faults {
		if i == 5 {
			texts = append(texts, fmt.Sprintf("and %d more", len(faults)-i))
			break
		}
		texts = append(texts, f.String())
	}
	return strings.Join(texts, "; ")
}

func hasFault(faults []fault, fields ...string) bool {
	return slices.ContainsFunc(faults, func(f fault) bool { return slices.Contains(fields, f.field) })
}

type selfBinder interface{ bindSelf(raw json.RawMessage) }

// bind sets dst from an object of a valid frame and returns the faults. Names are case-sensitive. Duplicates are
// faults; unknown fields and nulls are ignored.
func bind(raw json.RawMessage, dst any) []fault {
	b := &binding{}
	b.bindStruct("", raw, reflect.ValueOf(dst).Elem())
	return b.faults
}

// bind is the function bind for the frame itself, which is already split.
func (x *decoding) bind(dst any) []fault {
	b := &binding{}
	b.bindObject("", x.top, reflect.ValueOf(dst).Elem())
	return b.faults
}

type binding struct{ faults []fault }

func (b *binding) fail(field, text string) {
	b.faults = append(b.faults, fault{field: field, text: text})
}

func (b *binding) bindStruct(path string, raw json.RawMessage, v reflect.Value) {
	o, err := splitObject(raw)
	if err != nil {
		b.fail(path, err.Error())
		return
	}
	b.bindObject(path, o, v)
}

func (b *binding) bindObject(path string, o object, v reflect.Value) {
	for _, key := range o.duplicates() {
		b.faults = append(b.faults, fault{field: join(path, key), text: "is there twice", duplicate: true})
	}
	b.bindFields(path, o, v)
}

func (b *binding) bindFields(path string, o object, v reflect.Value) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Anonymous {
			b.bindFields(path, o, v.Field(i))
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if value, ok := o.get(name); ok && field.IsExported() {
			b.bindValue(join(path, name), value, v.Field(i), field.Tag.Get("wire") == "id")
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (b *binding) bindValue(path string, raw json.RawMessage, v reflect.Value, id bool) {
	switch p := v.Addr().Interface().(type) {
	case selfBinder:
		p.bindSelf(raw)
		return
	case *json.RawMessage:
		*p = raw
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		b.bindValue(path, raw, v.Elem(), id)
	case reflect.Struct:
		b.bindStruct(path, raw, v)
	case reflect.Slice:
		b.bindSlice(path, raw, v, id)
	case reflect.String:
		b.bindString(path, raw, v, id)
	case reflect.Bool:
		b.bindBool(path, raw, v)
	default:
		b.bindInteger(path, raw, v)
	}
}

func (b *binding) bindSlice(path string, raw json.RawMessage, v reflect.Value, id bool) {
	elements, err := splitArray(raw)
	if err != nil {
		b.fail(path, err.Error())
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(elements), len(elements)))
	for i, element := range elements {
		b.bindValue(join(path, strconv.Itoa(i)), element, v.Index(i), id)
	}
}

func (b *binding) bindString(path string, raw json.RawMessage, v reflect.Value, id bool) {
	s, err := unquote(raw)
	if err != nil {
		b.fail(path, err.Error())
		return
	}
	if id && !IsID(s) {
		b.fail(path, "must be at most 256 bytes of printable text")
		return
	}
	v.SetString(s)
}

// IsID reports whether s may be an identifier, or is empty. A person sees every character of it.
func IsID(s string) bool {
	return len(s) <= MaxID && strings.IndexFunc(s, display.IsUnseen) < 0
}

func (b *binding) bindBool(path string, raw json.RawMessage, v reflect.Value) {
	if s := string(raw); s != "true" && s != "false" {
		b.fail(path, "must be true or false")
		return
	}
	v.SetBool(raw[0] == 't')
}

func (b *binding) bindInteger(path string, raw json.RawMessage, v reflect.Value) {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	isUint := v.CanUint() && n >= 0
	switch {
	case err == nil && v.CanInt() && !v.OverflowInt(n):
		v.SetInt(n)
	case err == nil && isUint && !v.OverflowUint(uint64(n)):
		v.SetUint(uint64(n))
	default:
		b.fail(path, "must be an integer in range")
	}
}
