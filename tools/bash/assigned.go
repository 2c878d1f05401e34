package bash

import (
	"maps"

	"mvdan.cc/sh/v3/syntax"
)

// changed returns the variables that a piece of script may change when it runs
// in state s: those it assigns, and those of the functions it might call.
func (w *walker) changed(n syntax.Node, s *state) map[string]bool {
	w.steps -= s.size() / 8
	names := maps.Clone(w.assigns(n))
	for _, body := range s.funcs {
		if body != nil {
			for name, text := range w.assigns(body) {
				names[name] = names[name] || text
			}
		}
	}
	if names[anyName] {
		for name := range s.vars {
			names[name] = true
		}
	}
	delete(names, anyName)
	return names
}

// assigns remembers the answers of assignedIn.
func (w *walker) assigns(n syntax.Node) map[string]bool {
	names, ok := w.names[n]
	if !ok {
		names = w.assignedIn(n)
		w.names[n] = names
		w.steps -= len(names) / 32
	}
	return names
}

// anyName stands for every variable.
const anyName = "*"

// assignedIn returns the variables that a piece of script may set: true for those
// that may be set to text, false for those that are only set to numbers.
func (w *walker) assignedIn(root syntax.Node) map[string]bool {
	names := make(map[string]bool)
	number := func(name string) { names[name] = names[name] || false }
	syntax.Walk(root, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause:
			if n != root { // it is asked for by itself, too
				for name, text := range w.assigns(n) {
					names[name] = names[name] || text
				}
				return false
			}
		case *syntax.Assign:
			if n.Name != nil && isNumeric(n) {
				number(n.Name.Value)
			} else if n.Name != nil {
				names[n.Name.Value] = true
			}
		case *syntax.WordIter:
			names[n.Name.Value] = true
		case *syntax.ParamExp:
			if n.Exp != nil && n.Param != nil {
				names[n.Param.Value] = true
			}
		case *syntax.CallExpr:
			calledAssigns(n, names)
		case *syntax.BinaryArithm:
			number(arithmeticName(n.X))
		case *syntax.UnaryArithm:
			number(arithmeticName(n.X))
		}
		return true
	})
	return names
}

// isNumeric reports whether an assignment can only give a number.
func isNumeric(as *syntax.Assign) bool {
	if as.Value == nil || as.Append || as.Index != nil || len(as.Value.Parts) != 1 {
		return false
	}
	_, arithmetic := as.Value.Parts[0].(*syntax.ArithmExp)
	if p, ok := as.Value.Parts[0].(*syntax.ParamExp); ok && p.Param != nil && plainExpansion(p) && listed("? # $ !", p.Param.Value) {
		return true
	}
	return arithmetic || isInteger(as.Value.Lit())
}

// calledAssigns adds the variables that a simple command may set: any word of
// read x, printf -v x, getopts o x, mapfile x may be a name.
func calledAssigns(n *syntax.CallExpr, names map[string]bool) {
	if len(n.Args) == 0 {
		return
	}
	switch name := unescape(n.Args[0].Lit(), false); {
	case name == "" || name == "eval" || name == "." || name == "source" || name == "trap":
		names[anyName] = true
	case setsVariables[name]:
		for _, arg := range n.Args[1:] {
			names[arg.Lit()] = true
		}
	}
}

// setsVariables are the builtins whose words name variables they set.
var setsVariables = map[string]bool{
	"read": true, "printf": true, "getopts": true, "mapfile": true, "readarray": true, "unset": true, "wait": true, "command": true, "builtin": true,
}
