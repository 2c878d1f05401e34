package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// The builtins that set variables take their names from expanded words.

// valueFlags are the flags of these builtins that take a value, and those that do not.
var valueFlags = map[string][2]string{
	"read":      {"adinNptu", "ers"},
	"mapfile":   {"dnOsuCc", "t"},
	"readarray": {"dnOsuCc", "t"},
	"wait":      {"p", "nf"},
}

// readVariables follows builtins that set variables to what they read.
func (w *walker) readVariables(name string, args []word, s *state, source string) {
	if slices.ContainsFunc(args, func(a word) bool { return a.many || a.glob }) && name != "getopts" {
		w.opaque("the words of `"+name+"` are known only when it runs", source)
		return
	}
	if name == "getopts" {
		w.getopts(args, s, source)
		return
	}
	for _, a := range w.readFlags(name, args, unknown(), s, source) {
		w.readName(a, unknown(), name != "read", s, source)
	}
}

// getopts follows getopts OPTIONS NAME WORDS.
func (w *walker) getopts(args []word, s *state, source string) {
	if slices.ContainsFunc(args[:min(2, len(args))], func(a word) bool { return a.many || a.glob }) {
		w.opaque("the words of `getopts` are known only when it runs", source)
	} else if len(args) > 1 {
		w.readName(args[1], unknown(), false, s, source)
	}
}

// readFlags follows the flags of such a builtin, and returns the words after them.
func (w *walker) readFlags(name string, args []word, v value, s *state, source string) []word {
	takes, plain := valueFlags[name][0], valueFlags[name][1]
	for len(args) > 0 {
		text := args[0].text
		if !args[0].known() && (text == "" || text[0] == '-') && !args[0].number {
			w.opaque("a flag of `"+name+"` is known only when it runs", source)
			return nil
		}
		if len(text) < 2 || text[0] != '-' {
			return args
		}
		args = args[1:]
		if text == "--" {
			return args
		}
		n := strings.IndexAny(text[1:], takes) + 1
		switch {
		case n == 0 && strings.Trim(text[1:], plain) != "", n > 0 && strings.Trim(text[1:n], plain) != "":
			w.opaque("a flag of `"+name+"` is not known", source)
		case n > 0:
			operand := word{text: text[n+1:]}
			if operand.text == "" {
				if len(args) == 0 {
					return nil
				}
				operand, args = args[0], args[1:]
			}
			w.readFlag(name, text[n], operand, v, s, source)
		}
	}
	return args
}

// readFlag follows a flag with its value.
func (w *walker) readFlag(name string, flag byte, operand word, v value, s *state, source string) {
	switch {
	case name == "read" && flag == 'a':
		w.readName(operand, v, true, s, source)
	case name == "wait":
		w.readName(operand, v, false, s, source)
	case flag == 'C':
		w.opaque("`"+name+"` runs a text", source)
	}
}

// readName records that a builtin sets the variable that a word names.
func (w *walker) readName(a word, v value, array bool, s *state, source string) {
	switch {
	case !a.known():
		w.opaque("a variable's name is known only when it runs", source)
	case !syntax.ValidName(a.text):
		w.opaque("an array's index is evaluated", source)
	case array:
		w.setArray(a.text, s, false)
	default:
		w.setVar(a.text, v, s, false)
	}
}

// wait follows wait -p, which sets a variable to a number.
func (w *walker) wait(args []word, s *state, source string) {
	if len(args) > 0 && args[0].number {
		return // an operand: no flag follows
	}
	if slices.ContainsFunc(args, func(a word) bool { return a.many || a.glob }) {
		w.opaque("the words of `wait` are known only when it runs", source)
		return
	}
	v := someNumber()
	v.blank = true // nothing has ended
	w.readFlags("wait", args, v, s, source)
}

// printf follows printf -v, which sets a variable.
func (w *walker) printf(args []word, s *state, source string) {
	switch {
	case len(args) == 0:
	case args[0].known() && !strings.HasPrefix(args[0].text, "-v"):
	case args[0].dynamic && !args[0].many && args[0].text != "" && args[0].text[0] != '-', args[0].number:
	case args[0].is("-v") && len(args) > 1 && args[1].known() && syntax.ValidName(args[1].text):
		w.setVar(args[1].text, unknown(), s, false)
	default:
		w.opaque("`printf` may set a variable", source)
	}
}
