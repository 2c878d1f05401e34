package shell

import (
	"slices"
	"strconv"
	"strings"

	"github.com/toold/toold/shell/texts"
)

type value struct {
	text    string // the known prefix if dynamic
	dynamic bool
	glob    bool   // text is a pattern of file names, with quoted characters escaped
	number  bool   // an unknown number; implies dynamic
	orEmpty bool   // the number or nothing; implies number
	fresh   bool   // path made by mktemp, or empty; implies dynamic
	either  string // the texts of which it is one, each after a NUL; implies dynamic
}

func unknown() value    { return value{dynamic: true} }
func someNumber() value { return value{dynamic: true, number: true} }

func (v value) isNumeric() bool {
	integer := v.text == "" || texts.IsInteger(strings.TrimPrefix(v.text, "-"))
	return v.number || v.known() && integer
}

func (v value) known() bool { return !v.dynamic && !v.glob }

func (v value) or(o value) value {
	if v == o {
		return v
	}
	number := v.isNumeric() && o.isNumeric()
	blank := v.mayBeEmpty() || o.mayBeEmpty()
	return value{dynamic: true, number: number, orEmpty: number && blank, fresh: v.freshOrEmpty() && o.freshOrEmpty(), either: texts.Either(v.choices(), o.choices())}
}

// choices returns the texts of which v is one, each after a NUL, or "" if they are not known.
func (v value) choices() string {
	if v.known() {
		return "\x00" + v.text
	}
	return v.either
}

// surelyNumber reports whether the value is an unknown number, and not empty.
func (v value) surelyNumber() bool { return v.number && !v.orEmpty }

func (v value) isDigits() bool     { return v.surelyNumber() || v.known() && texts.IsInteger(v.text) }
func (v value) mayBeEmpty() bool   { return v.orEmpty || v == value{} }
func (v value) freshOrEmpty() bool { return v.fresh || v == value{} }

// variable is a value with its attributes.
type variable struct {
	value
	readonly bool
	array    bool
	hash     bool // certainly an associative array; implies array
	integer  bool
	exported bool
	unset    bool // declared without a value
	refers   bool // to the variable that its value names
}

func (v variable) or(o variable) variable {
	return variable{
		value: v.value.or(o.value), readonly: v.readonly || o.readonly,
		array: v.array || o.array, integer: v.integer || o.integer,
		hash:     v.hash && o.hash,
		exported: v.exported || o.exported, unset: v.unset || o.unset,
		refers: v.refers || o.refers,
	}
}

func (v variable) orUnset() variable { return v.or(variable{unset: true}) }

// atoi returns the value of a number, or a large one.
func atoi(s string) int {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	return 1 << 30
}

// alternatives returns the lists of words that the word may be.
func (wd word) alternatives() (lists [][]word) {
	if wd.either == "" {
		return [][]word{{wd}}
	}
	for text := range strings.SplitSeq(wd.either[1:], "\x00") {
		b := &builder{fields: []word{plainWord(text)}}
		if wd.many {
			b.fields = nil
			b.split(text)
			b.cut()
		}
		lists = append(lists, b.fields)
	}
	return lists
}

// anyOf returns what one of several words may be.
func (wd word) anyOf() value {
	if wd.either == "" || !wd.many {
		return wd.value
	}
	words := slices.Concat(wd.alternatives()...)
	if len(words) == 0 {
		return unknown()
	}
	v := words[0].value
	for _, one := range words[1:] {
		v = v.or(one.value)
	}
	return v
}

// maxCombinations limits how often one command is followed with the texts that its words may be.
const maxCombinations = 16

// chosen returns the index of a word that is one of a few texts, or -1 if there is none, or they are too many.
func (w *walker) chosen(args []word) int {
	first, all := -1, 1
	for i := range slices.Backward(args) {
		if n := strings.Count(args[i].either, "\x00"); n > 0 {
			first, all = i, min(all*n, maxCombinations+1)
		}
	}
	if all > maxCombinations || w.posix || w.steps <= 0 {
		return -1
	}
	return first
}

// eachChoice runs a command once with each text that the i-th of its words may be.
func (w *walker) eachChoice(args []word, i int, s *state, source string) {
	out := &state{dead: true}
	for _, words := range args[i].alternatives() {
		branch := w.fork(s)
		if words = slices.Concat(args[:i], words, args[i+1:]); len(words) > 0 {
			w.run(words, branch, source)
		}
		w.join(out, branch)
	}
	*s = *out
}
