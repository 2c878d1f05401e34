package shell

import "maps"

// table maps names to what is known of them. Copies share their entries until one of
// them changes, since most branches of a script change little.
type table[T comparable] struct {
	entries *map[string]T
	shared  *bool // set once another table has the same entries
}

func newTable[T comparable]() table[T] {
	return table[T]{entries: &map[string]T{}, shared: new(bool)}
}

// share returns a copy.
func (t *table[T]) share() table[T] {
	if !*t.shared { // a table that several goroutines have is not written
		*t.shared = true
	}
	return table[T]{entries: t.entries, shared: t.shared}
}

func (t *table[T]) get(name string) (T, bool) {
	v, ok := (*t.entries)[name]
	return v, ok
}

// own makes the entries this table's alone. It returns how many were copied.
func (t *table[T]) own() int {
	if !*t.shared {
		return 0
	}
	entries := maps.Clone(*t.entries)
	t.entries, t.shared = &entries, new(bool)
	return len(entries)
}

// put sets an entry and returns how many were copied for it.
func (t *table[T]) put(name string, v T) int {
	if have, ok := (*t.entries)[name]; ok && have == v {
		return 0
	}
	n := t.own()
	(*t.entries)[name] = v
	return n
}

// drop removes an entry.
func (t *table[T]) drop(name string) int {
	if _, ok := (*t.entries)[name]; !ok {
		return 0
	}
	n := t.own()
	delete(*t.entries, name)
	return n
}

// join makes t what is known when either t or o holds. or gives one of two entries;
// missing gives an entry that only one of them has. It reports whether t changed.
func (t *table[T]) join(o table[T], or func(a, b T) T, missing func(T) T) (changed bool, cost int) {
	if t.entries == o.entries {
		return false, 0
	}
	cost = len(*t.entries) + len(*o.entries)
	set := func(name string, have, v T, had bool) {
		if had && have == v {
			return
		}
		changed = true
		cost += t.put(name, v)
	}
	for name, v := range *o.entries {
		have, ok := (*t.entries)[name]
		if ok {
			set(name, have, or(have, v), true)
		} else {
			set(name, have, missing(v), false)
		}
	}
	for name, have := range *t.entries {
		if _, ok := (*o.entries)[name]; !ok {
			set(name, have, missing(have), true)
		}
	}
	return changed, cost
}
