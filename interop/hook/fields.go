package hook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/toold/toold/internal/strict"
)

// fields are the members of an object by folded name. Agents differ in the spelling of names, and in which of several
// members with one name counts.
type fields map[string]json.RawMessage

func fold(name string) string {
	return strings.ToLower(strings.ToUpper(strings.ReplaceAll(name, "_", ""))) // both, since ſ folds to S, and K (U+212A) to k
}

// split returns the members of valid JSON. Two different values for one name are an error.
func split(text json.RawMessage) (fields, error) {
	const deepest = 100 // a limit, because each level is parsed again
	if strict.TooDeep(text, deepest) {
		return nil, fmt.Errorf("it is nested more than %d levels deep", deepest)
	}
	members, err := strict.Object(text, math.MaxInt)
	if err != nil {
		return nil, err
	}
	f := make(fields, len(members))
	for _, m := range members {
		name := fold(m.Name)
		if there, ok := f[name]; ok && !bytes.Equal(there, m.Value) {
			return nil, fmt.Errorf("%q has two values", m.Name)
		}
		f[name] = m.Value
	}
	return f, nil
}

// text returns the first of the named fields that is a string, or "".
func (f fields) text(names ...string) string {
	for _, name := range names {
		var s *string
		if json.Unmarshal(f[name], &s) == nil && s != nil {
			return *s
		}
	}
	return ""
}

// only returns the value of the named fields, or nil if there is none. Different values are an error, because it is
// not known which one the agent uses.
func (f fields) only(names ...string) (value json.RawMessage, err error) {
	first := ""
	for _, name := range names {
		v := f[name]
		if v == nil || string(v) == "null" {
			continue
		}
		if value != nil && !bytes.Equal(v, value) {
			return nil, fmt.Errorf("%s and %s differ, and only one of them would be used; give one", first, name)
		}
		first, value = name, v
	}
	return value, nil
}

// onlyText is like only, for strings.
func (f fields) onlyText(names ...string) (text string, err error) {
	value, err := f.only(names...)
	if err == nil && value != nil && json.Unmarshal(value, &text) != nil {
		err = fmt.Errorf("%s is no string", strings.Join(names, ", "))
	}
	return text, err
}

// list returns the elements of an array: strings, and the paths in objects.
func (f fields) list(name string) (list []string, err error) {
	value, err := f.only(name)
	if err != nil || value == nil {
		return nil, err
	}
	elements, err := strict.Array(value, math.MaxInt)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, e := range elements {
		var text string
		if json.Unmarshal(e, &text) == nil && string(e) != "null" {
			list = append(list, text)
			continue
		}
		each, err := split(e)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		more, err := paths(each)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		list = append(list, more...)
	}
	return list, nil
}
