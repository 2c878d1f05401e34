package bash

import (
	"mvdan.cc/sh/v3/syntax"

	"github.com/toold/toold/policy"
)

// redirect walks one redirection.
func (w *walker) redirect(r *syntax.Redirect, s *state) {
	if r.N != nil && len(r.N.Value) > 0 && r.N.Value[0] == '{' {
		w.opaque("a redirection sets a variable", w.text(r))
	}
	if r.N != nil && len(r.N.Value) > 1 && r.N.Value[0] >= '5' {
		w.opaque("bash itself may use this descriptor, for a process substitution", w.text(r))
	}
	first := r.N == nil || r.N.Value == "0"
	if r.Hdoc != nil {
		if text := w.document(r.Hdoc, s); first {
			w.input = text
		}
	}
	if r.Word == nil {
		return
	}
	if r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc {
		return // the word is only the mark of the end
	}
	wd := w.single(r.Word, s)
	if r.Op == syntax.WordHdoc && first {
		w.input = wd.text
	}
	w.target(r.Op, wd, s, w.text(r))
}

// document walks what is expanded in a here-document: variables, arithmetic and
// substitutions. Braces and ~ are text there (bash(1), Here Documents). It returns
// the text as far as it is known.
func (w *walker) document(doc *syntax.Word, s *state) string {
	b := &builder{}
	for _, p := range doc.Parts {
		w.part(p, b, s, true)
	}
	return b.raw.String()
}

// target records what is opened by a redirection.
func (w *walker) target(op syntax.RedirOperator, wd word, s *state, source string) {
	if wd.dynamic && !wd.glob && op != syntax.WordHdoc && mayBeSocket(wd.text) {
		// It is told after the file that is probably meant.
		defer w.add(policy.Effect{Kind: policy.Net, Source: source})
	}
	if wd.text == "" && op != syntax.WordHdoc {
		wd.dynamic = true // bash refuses an empty name; a mistake is shown as one
	}
	switch op {
	case syntax.WordHdoc:
	case syntax.RdrIn:
		w.path(policy.Read, wd, s, source)
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
		w.path(policy.Write, wd, s, source)
	case syntax.RdrInOut:
		w.path(policy.Read, wd, s, source)
		w.path(policy.Write, wd, s, source)
	case syntax.DplOut, syntax.DplIn:
		if isDescriptor(wd) {
			return
		}
		if op == syntax.DplIn {
			w.opaque("a descriptor is computed", source)
			return
		}
		w.path(policy.Write, wd, s, source)
	default:
		w.opaque("this redirection is not followed", source)
	}
}

// isDescriptor reports whether the word after >& or <& is a descriptor or "-".
func isDescriptor(wd word) bool {
	if wd.dynamic || wd.text == "" {
		return false
	}
	for i, r := range wd.text {
		if (r < '0' || r > '9') && (r != '-' || i != len(wd.text)-1) {
			return false
		}
	}
	return true
}
