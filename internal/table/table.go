// Package table has maps that are cheap to copy.
package table

import "maps"

// Table is a map with copy on write.
type Table[T comparable] struct {
	entries *map[string]T
	shared  *bool // set once another table uses the same map
}

// New returns an empty table.
func New[T comparable]() Table[T] { return Table[T]{entries: &map[string]T{}, shared: new(bool)} }

// Share returns a table of the same map, which neither changes from now on.
func (t *Table[T]) Share() Table[T] {
	if !*t.shared { // shared maps are read-only
		*t.shared = true
	}
	return Table[T]{entries: t.entries, shared: t.shared}
}

// All returns the map, which must not be changed.
func (t *Table[T]) All() map[string]T { return *t.entries }

// Get returns an entry.
func (t *Table[T]) Get(name string) (T, bool) {
	v, ok := (*t.entries)[name]
	return v, ok
}

func (t *Table[T]) own() int {
	if !*t.shared {
		return 0
	}
	entries := maps.Clone(*t.entries)
	t.entries, t.shared = &entries, new(bool)
	return len(entries)
}

// Put sets an entry. It returns how many were copied.
func (t *Table[T]) Put(name string, v T) int {
	if have, ok := (*t.entries)[name]; ok && have == v {
		return 0
	}
	n := t.own()
	(*t.entries)[name] = v
	return n
}

// Drop removes an entry. It returns how many were copied.
func (t *Table[T]) Drop(name string) int {
	if _, ok := (*t.entries)[name]; !ok {
		return 0
	}
	n := t.own()
	delete(*t.entries, name)
	return n
}

// Join makes t the union of both tables. missing joins an entry that only one of them has.
func (t *Table[T]) Join(o Table[T], or func(a, b T) T, missing func(T) T) (changed bool, cost int) {
	if t.entries == o.entries {
		return false, 0
	}
	cost = len(*t.entries) + len(*o.entries)
	set := func(name string, v T) {
		if have, ok := t.Get(name); !ok || have != v {
			changed = true
			cost += t.Put(name, v)
		}
	}
	for name, v := range *o.entries {
		if have, ok := t.Get(name); ok {
			set(name, or(have, v))
		} else {
			set(name, missing(v))
		}
	}
	for name, have := range *t.entries {
		if _, ok := o.Get(name); !ok {
			set(name, missing(have))
		}
	}
	return changed, cost
}
