//go:build linux

package conformance

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toold/toold/conformance/suite"
)

// matcher describes a frame: the keys are paths into it ("a.b.0", -1 = last),
// the values are what must be there, literally or as an object of operators:
//
//	$type string, number, integer, boolean, array, object or null
//	$re   the text matches the expression    $has, $hasnt  the text or list holds it, or not
//	$len  of a list or a text                $in    one of these
//	$absent  missing or null                 $any   there, even null
//	$join    the texts of the list together  $save  matches anything, kept as $name
//
// "$name" as a literal is what was kept. The keys $conn (the connection the
// frame came on) and $save ({name: path}) are not paths.
type matcher map[string]any

// vars are the values kept by $save.
type vars map[string]any

// match returns why a frame on a connection does not match, "" if it does.
func (v vars) match(m matcher, conn string, frame any) string {
	for key, want := range m {
		switch key {
		case "$save":
		case "$conn":
			if want != conn {
				return fmt.Sprintf("came on connection %s, not %v", conn, want)
			}
		default:
			if why := v.matchPath(key, want, frame); why != "" {
				return key + ": " + why
			}
		}
	}
	return ""
}

func (v vars) matchPath(path string, want, frame any) string {
	got, there := lookup(path, frame)
	if ops, ok := operators(want); ok {
		return v.matchOperators(ops, got, there)
	}
	if !there {
		return "is missing"
	}
	return v.matchValue(want, got)
}

// matchValue compares with a literal. An object in it may omit members of the frame.
func (v vars) matchValue(want, got any) string {
	switch w := want.(type) {
	case string:
		if kept, ok := v[strings.TrimPrefix(w, "$")]; ok && strings.HasPrefix(w, "$") {
			want = kept
		}
	case map[string]any:
		return v.match(w, "", got)
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(w) {
			return fmt.Sprintf("is %s, want a list of %d", suite.Short(got), len(w))
		}
		for i := range w {
			if why := v.matchPath(strconv.Itoa(i), w[i], list); why != "" {
				return fmt.Sprintf("[%d] %s", i, why)
			}
		}
		return ""
	}
	if !reflect.DeepEqual(want, got) {
		return fmt.Sprintf("is %s, want %s", suite.Short(got), suite.Short(want))
	}
	return ""
}

// operators returns an object whose keys are operators.
func operators(want any) (map[string]any, bool) {
	m, ok := want.(map[string]any)
	if !ok || len(m) == 0 {
		return nil, false
	}
	for key := range m {
		if !strings.HasPrefix(key, "$") {
			return nil, false
		}
	}
	return m, true
}

func (v vars) matchOperators(ops map[string]any, got any, there bool) string {
	for op, arg := range ops {
		var why string
		switch {
		case op == "$absent":
			if absent := !there || got == nil; absent != (arg == true) {
				why = fmt.Sprintf("is %s", suite.Short(got))
			}
		case !there:
			return "is missing"
		default:
			why = v.matchOperator(op, arg, got)
		}
		if why != "" {
			return why
		}
	}
	return ""
}

func (v vars) matchOperator(op string, arg, got any) string {
	ok := false
	switch op {
	case "$any", "$save":
		ok = true
	case "$type":
		ok = typeOf(got) == arg || arg == "integer" && isInteger(got)
	case "$re":
		return matchPattern(arg, got)
	case "$has":
		ok = containsAll(got, arg)
	case "$hasnt":
		ok = !containsAny(got, arg)
	case "$len":
		ok = v.matchValue(arg, length(got)) == ""
	case "$in":
		list, _ := arg.([]any)
		ok = slices.ContainsFunc(list, func(w any) bool { return v.matchAny(w, got) })
	case "$join":
		text, isText := join(got)
		ok = isText && v.matchAny(arg, text)
	default:
		return "has the unknown operator " + op
	}
	if !ok {
		return fmt.Sprintf("is %s, want %s %s", suite.Short(got), op, suite.Short(arg))
	}
	return ""
}

// matchAny compares with a literal or operators.
func (v vars) matchAny(want, got any) bool {
	return v.matchPath("0", want, []any{got}) == ""
}

// keep stores what the $save parts of a matcher name in a frame that matched.
func (v vars) keep(m matcher, frame any) error {
	save := func(name string, path string) error {
		value, there := lookup(path, frame)
		if !there {
			return fmt.Errorf("cannot save %s: the frame has no %s", name, path)
		}
		v[name] = value
		return nil
	}
	for key, want := range m {
		ops, _ := operators(want)
		if key == "$save" {
			names, _ := want.(map[string]any)
			for name, path := range names {
				if err := save(name, fmt.Sprint(path)); err != nil {
					return err
				}
			}
		} else if name, ok := ops["$save"].(string); ok {
			if err := save(name, key); err != nil {
				return err
			}
		}
	}
	return nil
}

// lookup follows a path. A key that is there as written wins over a path.
func lookup(path string, value any) (any, bool) {
	if m, ok := value.(map[string]any); ok {
		if got, ok := m[path]; ok {
			return got, true
		}
	}
	head, rest, more := strings.Cut(path, ".")
	var got any
	switch v := value.(type) {
	case map[string]any:
		var ok bool
		if got, ok = v[head]; !ok {
			return nil, false
		}
	case []any:
		i, err := strconv.Atoi(head)
		if i < 0 {
			i += len(v)
		}
		if err != nil || i < 0 || i >= len(v) {
			return nil, false
		}
		got = v[i]
	default:
		return nil, false
	}
	if !more {
		return got, true
	}
	return lookup(rest, got)
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case []any:
		return "array"
	default:
		return "object"
	}
}

func isInteger(v any) bool {
	n, ok := v.(float64)
	return ok && n == float64(int64(n))
}

// length of a list or, in characters, of a text; -1 for anything else.
func length(v any) float64 {
	switch v := v.(type) {
	case []any:
		return float64(len(v))
	case string:
		return float64(utf8.RuneCountInString(v))
	}
	return -1
}

// join puts a list of texts together.
func join(v any) (string, bool) {
	list, ok := v.([]any)
	var b strings.Builder
	for _, item := range list {
		s, isText := item.(string)
		ok = ok && isText
		b.WriteString(s)
	}
	return b.String(), ok
}

// contains reports whether a text contains another, or a list an item; a list of
// texts also holds what its texts together contain.
func contains(got, want any) bool {
	part, _ := want.(string)
	switch g := got.(type) {
	case string:
		return part != "" && strings.Contains(g, part)
	case []any:
		if slices.ContainsFunc(g, func(item any) bool { return reflect.DeepEqual(item, want) }) {
			return true
		}
		text, ok := join(g)
		return ok && part != "" && strings.Contains(text, part)
	}
	return false
}

func asList(want any) []any {
	if list, ok := want.([]any); ok {
		return list
	}
	return []any{want}
}

func containsAll(got, want any) bool {
	return !slices.ContainsFunc(asList(want), func(w any) bool { return !contains(got, w) })
}

func containsAny(got, want any) bool {
	return slices.ContainsFunc(asList(want), func(w any) bool { return contains(got, w) })
}

func matchPattern(pattern, got any) string {
	text, ok := got.(string)
	if !ok {
		return fmt.Sprintf("is %s, want a text", suite.Short(got))
	}
	found, err := suite.Find(fmt.Sprint(pattern), text)
	if err != nil {
		return err.Error()
	}
	if !found {
		return fmt.Sprintf("is %s, want it to match %v", suite.Short(got), pattern)
	}
	return ""
}
