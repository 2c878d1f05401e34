package shell

import (
	"maps"
	"regexp"
	"strconv"
	"strings"
)

type value struct {
	text    string // the known prefix if dynamic
	dynamic bool
	glob    bool // text is a pattern of file names
	number  bool // unknown; implies dynamic
	orEmpty bool
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
}

func (v variable) or(o variable) variable {
	return variable{
		value: v.value.or(o.value), readonly: v.readonly || o.readonly,
		array: v.array || o.array, integer: v.integer || o.integer,
		exported: v.exported || o.exported, unset: v.unset || o.unset,
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

func ansiC(s string) (text string, ok bool) {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			return "", false
		}
		if j := strings.IndexByte(`abeEfnrtv\'"?`, s[i]); j >= 0 {
			out.WriteByte("\a\b\x1b\x1b\f\n\r\t\v\\'\"?"[j])
			continue
		}
		digits, base := number(s[i:])
		n, err := strconv.ParseUint(digits, base, 64)
		if err != nil || n == 0 || n > 0x7e {
			return "", false
		}
		i += strings.Index(s[i:], digits) + len(digits) - 1
		out.WriteByte(byte(n))
	}
	return out.String(), true
}

func number(s string) (digits string, base int) {
	most, base, allowed := 3, 8, "01234567"
	if i := strings.IndexByte("xuU", s[0]); i >= 0 {
		s, most, base, allowed = s[1:], 2<<i, 16, "0123456789abcdefABCDEF"
	}
	n := 0
	for n < min(most, len(s)) && strings.IndexByte(allowed, s[n]) >= 0 {
		n++
	}
	return s[:n], base
}

const maxTrim = 256

func trim(op string, v, pattern value) (text string, ok bool) {
	simple := v.known() && pattern.known() && !strings.ContainsAny(pattern.text, `[]\()|`)
	both := v.text + pattern.text
	if !simple || len(both) > maxTrim || strings.ContainsFunc(both, func(r rune) bool { return r >= 0x80 }) {
		return "", false
	}
	var expr strings.Builder
	for _, c := range pattern.text {
		expr.WriteString(map[rune]string{'*': ".*", '?': "."}[c])
		if c != '*' && c != '?' {
			expr.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	whole := regexp.MustCompile("(?s)^(?:" + expr.String() + ")$")
	for i := range len(v.text) + 1 {
		n := i
		if len(op) == 2 {
			n = len(v.text) - i
		}
		if op[0] == '#' {
			if whole.MatchString(v.text[:n]) {
				return v.text[n:], true
			}
		} else if whole.MatchString(v.text[len(v.text)-n:]) {
			return v.text[:len(v.text)-n], true
		}
	}
	return v.text, true
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 1 << 30
	}
	return n
}
