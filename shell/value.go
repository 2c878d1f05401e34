package shell

import "strings"

// value is what is known of the text of a variable.
type value struct {
	text    string // the value, or its known beginning when dynamic
	dynamic bool
	glob    bool // text is a pattern, and the value one of the names it matches
	number  bool // it is some number; implies dynamic
	blank   bool // of a number: or it is empty
	fresh   bool // the path of a file or directory that mktemp made, or empty; implies dynamic
}

// unknown is any text.
func unknown() value { return value{dynamic: true} }

// someNumber is any number.
func someNumber() value { return value{dynamic: true, number: true} }

// isNumeric reports whether a value is empty or certainly a number.
func (v value) isNumeric() bool {
	known := !v.dynamic && !v.glob
	return v.number || known && (v.text == "" || isInteger(strings.TrimPrefix(v.text, "-")))
}

// known reports whether all of the value is known.
func (v value) known() bool { return !v.dynamic && !v.glob }

// or is one of two values, whichever.
func (v value) or(o value) value {
	if v == o {
		return v
	}
	fresh := (v.fresh || v == value{}) && (o.fresh || o == value{})
	blank := v.blank || o.blank || v == value{} || o == value{}
	number := v.isNumeric() && o.isNumeric()
	return value{dynamic: true, number: number, blank: number && blank, fresh: fresh}
}

// variable is a value with what declare says of it. Each mark means that it may hold.
type variable struct {
	value
	readonly bool
	array    bool
	integer  bool
	exported bool
	unset    bool // it is declared, and has no value
}

func (v variable) or(o variable) variable {
	return variable{
		value: v.value.or(o.value), readonly: v.readonly || o.readonly, array: v.array || o.array,
		integer: v.integer || o.integer, exported: v.exported || o.exported, unset: v.unset || o.unset,
	}
}

// orUnset is a variable, or one that does not exist: then it is empty.
func (v variable) orUnset() variable { return v.or(variable{unset: true}) }

// isInteger reports whether bash reads a text as the number that it shows. A number
// with a leading zero is octal, or an error.
func isInteger(s string) bool {
	return isNumber(s) && len(s) <= 18 && (s[0] != '0' || len(s) == 1)
}

// isNumber reports whether a text consists of digits.
func isNumber(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
