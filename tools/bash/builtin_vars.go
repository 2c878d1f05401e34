package bash

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// valueFlags are the flags, of the builtins that set variables, after which a
// value stands, and those without one.
var valueFlags = map[string][2]string{
	"read":      {"adinNptu", "ers"},
	"mapfile":   {"dnOsuCc", "t"},
	"readarray": {"dnOsuCc", "t"},
	"wait":      {"p", "nf"},
}

// readVariables follows builtins that set variables to what they read.
func (w *walker) readVariables(name string, args []word, s *state, source string) {
	if name == "getopts" {
		if len(args) > 0 && args[0].split {
			w.opaque("the words of getopts are known only when it runs", source)
		} else if len(args) > 1 {
			w.readName(args[1], value{dynamic: true}, s, source)
		}
		return
	}
	rest := w.readFlags(name, args, value{dynamic: true}, s, source)
	for _, a := range rest {
		w.arrays[a.text] = w.arrays[a.text] || name != "read"
		w.readName(a, value{dynamic: true}, s, source)
	}
}

// readFlags follows the flags of such a builtin, and returns the words after them.
func (w *walker) readFlags(name string, args []word, v value, s *state, source string) []word {
	takes, plain := valueFlags[name][0], valueFlags[name][1]
	for len(args) > 0 && (args[0].dynamic || len(args[0].text) > 1 && args[0].text[0] == '-') {
		text, dynamic := args[0].text, args[0].dynamic || args[0].glob
		args = args[1:]
		if text == "--" && !dynamic {
			return args
		}
		if n := strings.IndexAny(text[min(1, len(text)):], takes) + 1; n == 0 || dynamic {
			if dynamic || strings.Trim(text[1:], plain) != "" {
				w.opaque("a flag of "+name+" is known only when it runs", source)
			}
		} else if strings.Trim(text[1:n], plain) != "" {
			w.opaque("a flag of "+name+" is not known", source)
		} else {
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
	case operand.split:
		w.opaque("the words of "+name+" are known only when it runs", source)
	case name == "read" && flag == 'a':
		w.arrays[operand.text] = true
		w.readName(operand, v, s, source)
	case name == "wait":
		w.readName(operand, v, s, source)
	case flag == 'C' || flag == 'c':
		w.opaque(name+" runs a text", source)
	}
}

// readName records that a builtin sets the variable that a word names.
func (w *walker) readName(a word, v value, s *state, source string) {
	switch {
	case a.dynamic || a.glob:
		w.opaque("a variable's name is known only when it runs", source)
	case !syntax.ValidName(a.text):
		w.opaque("an array's index is evaluated", source)
	default:
		w.setVar(a.text, v, s, false)
	}
}

// wait follows wait -p, which sets a variable to a number.
func (w *walker) wait(args []word, s *state, source string) {
	if len(args) > 0 && args[0].number {
		return // an operand: no flag follows
	}
	w.readFlags("wait", args, value{dynamic: true, number: true}, s, source)
}

// trap follows the text of a trap, which runs at any later time.
func (w *walker) trap(args []word, s *state, source string) {
	if len(args) > 0 && args[0].text == "--" {
		args = args[1:]
	} else if len(args) > 0 && !args[0].dynamic && strings.HasPrefix(args[0].text, "-") {
		return // it shows traps, or takes one away
	}
	if len(args) < 2 || args[0].text == "-" && !args[0].dynamic {
		return
	}
	if args[0].dynamic || args[0].glob {
		w.opaque("trap runs a text known only when it runs", source)
		return
	}
	changes := w.changes
	// It may run now, as things are, when the script ends, or at any other time.
	w.script(args[0].text, w.fork(s))
	later := w.fork(s)
	for name := range later.vars {
		later.vars[name] = value{dynamic: true}
	}
	later.dirs, later.exact = nil, false
	w.script(args[0].text, later)
	w.traps = append(w.traps, args[0].text)
	for _, signal := range args[1:] {
		if w.changes != changes && (signal.dynamic || !listed("EXIT 0", signal.text)) {
			w.opaque("a trap changes what comes after it", source)
		}
	}
}
