package shell

import (
	"maps"
	"strconv"
	"strings"
)

type value struct {
	text    string // the known prefix if dynamic
	dynamic bool
	glob    bool // text is a pattern of file names, with quoted characters escaped
	number  bool // an unknown number; implies dynamic
	orEmpty bool // the number or nothing; implies number
	fresh   bool // path made by mktemp, or empty; implies dynamic
}

func unknown() value    { return value{dynamic: true} }
func someNumber() value { return value{dynamic: true, number: true} }

func (v value) isNumeric() bool {
	integer := v.text == "" || isInteger(strings.TrimPrefix(v.text, "-"))
	return v.number || v.known() && integer
}

func (v value) known() bool { return !v.dynamic && !v.glob }

func (v value) or(o value) value {
	if v == o {
		return v
	}
	number := v.isNumeric() && o.isNumeric()
	blank := v.mayBeEmpty() || o.mayBeEmpty()
	return value{dynamic: true, number: number, orEmpty: number && blank, fresh: v.freshOrEmpty() && o.freshOrEmpty()}
}

// surelyNumber reports whether the value is an unknown number, and not empty.
func (v value) surelyNumber() bool { return v.number && !v.orEmpty }

func (v value) mayBeEmpty() bool   { return v.orEmpty || v == value{} }
func (v value) freshOrEmpty() bool { return v.fresh || v == value{} }

// variable is a value with its attributes.
type variable struct {
	value
	readonly bool
	array    bool
	integer  bool
	exported bool
	unset    bool // declared without a value
	refers   bool // to the variable that its value names
}

func (v variable) or(o variable) variable {
	return variable{
		value: v.value.or(o.value), readonly: v.readonly || o.readonly,
		array: v.array || o.array, integer: v.integer || o.integer,
		exported: v.exported || o.exported, unset: v.unset || o.unset,
		refers: v.refers || o.refers,
	}
}

func (v variable) orUnset() variable { return v.or(variable{unset: true}) }

// isInteger reports whether bash reads s as this decimal number: a leading zero means octal.
func isInteger(s string) bool {
	octal := len(s) > 1 && s[0] == '0'
	return isNumber(s) && !octal && len(s) <= 18
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// table is a map with copy on write.
type table[T comparable] struct {
	entries *map[string]T
	shared  *bool // set once another table uses the same map
}

func newTable[T comparable]() table[T] { return table[T]{entries: &map[string]T{}, shared: new(bool)} }

func (t *table[T]) share() table[T] {
	if !*t.shared { // shared maps are read-only
		*t.shared = true
	}
	return table[T]{entries: t.entries, shared: t.shared}
}

func (t *table[T]) get(name string) (T, bool) {
	v, ok := (*t.entries)[name]
	return v, ok
}

func (t *table[T]) own() int {
	if !*t.shared {
		return 0
	}
	entries := maps.Clone(*t.entries)
	t.entries, t.shared = &entries, new(bool)
	return len(entries)
}

func (t *table[T]) put(name string, v T) int {
	if have, ok := (*t.entries)[name]; ok && have == v {
		return 0
	}
	n := t.own()
	(*t.entries)[name] = v
	return n
}

func (t *table[T]) drop(name string) int {
	if _, ok := (*t.entries)[name]; !ok {
		return 0
	}
	n := t.own()
	delete(*t.entries, name)
	return n
}

// join makes t the union of both tables. missing joins an entry that only one of them has.
func (t *table[T]) join(o table[T], or func(a, b T) T, missing func(T) T) (changed bool, cost int) {
	if t.entries == o.entries {
		return false, 0
	}
	cost = len(*t.entries) + len(*o.entries)
	set := func(name string, v T) {
		if have, ok := t.get(name); !ok || have != v {
			changed = true
			cost += t.put(name, v)
		}
	}
	for name, v := range *o.entries {
		if have, ok := t.get(name); ok {
			set(name, or(have, v))
		} else {
			set(name, missing(v))
		}
	}
	for name, have := range *t.entries {
		if _, ok := o.get(name); !ok {
			set(name, missing(have))
		}
	}
	return changed, cost
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 1 << 30
	}
	return n
}
