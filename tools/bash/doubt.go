package bash

import (
	"mvdan.cc/sh/v3/syntax"
)

// doubts tell why what comes next may not run. What it would change is then not
// known; what it would run is told all the same.
type doubts struct {
	stopped bool // the rest of the line: an expansion may fail, and bash goes on with the next line
	left    bool // the rest of a function: return
	broken  bool // the rest of a loop's body: break, continue
}

func (d doubts) any() bool { return d.stopped || d.left || d.broken }

// apart walks what runs in a process of its own: what ends it ends nothing else.
func (w *walker) apart(walk func()) {
	outer := w.doubts
	w.doubts = doubts{}
	walk()
	w.doubts = outer
}

// divides notes arithmetic that may fail.
func (w *walker) divides(x *syntax.BinaryArithm) {
	switch x.Op {
	case syntax.Quo, syntax.Rem, syntax.QuoAssgn, syntax.RemAssgn, syntax.Pow:
	default:
		return
	}
	if word, ok := x.Y.(*syntax.Word); !ok || !isInteger(word.Lit()) || word.Lit() == "0" {
		w.doubts.stopped = true
	}
}

// slices notes a length of ${x:a:b} that may be too small.
func (w *walker) slices(length syntax.ArithmExpr) {
	if word, ok := length.(*syntax.Word); length != nil && (!ok || !isInteger(word.Lit())) {
		w.doubts.stopped = true
	}
}

// mayFail reports whether a redirection may fail, so that its command does not
// run: a file may not be there, a descriptor not be open.
func (w *walker) mayFail(redirs []*syntax.Redirect) bool {
	for _, r := range redirs {
		text := ""
		if r.Word != nil {
			text = r.Word.Lit()
		}
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		case syntax.DplOut, syntax.DplIn:
			if text == "-" {
				w.closed = true
			} else if w.closed || text != "0" && text != "1" && text != "2" {
				return true
			}
		default:
			if !neutralPaths[text] {
				return true
			}
		}
	}
	return false
}

// refusal tells why setting a variable is more, or less, than that.
func (w *walker) refusal(name string, v value) string {
	switch {
	case numericNames[name] && !v.isNumeric():
		return "the shell evaluates what " + name + " is set to"
	case w.readonly[name] || fixedNames[name]:
		return name + " cannot be set"
	case name == "FUNCNEST":
		return "FUNCNEST ends functions early"
	}
	return ""
}

// fixedNames are variables that bash lets nobody set.
var fixedNames = map[string]bool{"UID": true, "EUID": true, "PPID": true, "BASHOPTS": true, "SHELLOPTS": true, "BASH_VERSINFO": true}

// isNumeric reports whether a value is empty or certainly a number.
func (v value) isNumeric() bool {
	return v.number || !v.dynamic && !v.glob && (v.text == "" || isInteger(v.text))
}

// isInteger reports whether bash reads a text as the number that it shows. A
// number with a leading zero is octal, or an error.
func isInteger(s string) bool {
	return isNumber(s) && len(s) <= 18 && (s[0] != '0' || len(s) == 1)
}
