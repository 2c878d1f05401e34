package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/programs"
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
	if r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc {
		w.endOfDocument(r)
	}
	if r.Hdoc != nil {
		if text := w.document(r.Hdoc, s); first {
			s.input = text
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
		s.input = wd.text
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

// endOfDocument checks that a here-document ends where bash ends it: at the first line
// that is the delimiter and nothing else. The parser's node holds that line, too, and
// there is none of an empty document.
func (w *walker) endOfDocument(r *syntax.Redirect) {
	delimiter, ok := delimiterOf(r.Word)
	body, rest := "", ""
	if from := int(r.Word.End().Offset()); r.Hdoc == nil {
		_, rest, _ = strings.Cut(w.source[min(from, len(w.source)):], "\n")
		body, _, _ = strings.Cut(rest, "\n")
		rest = "" // the documents before this one may be there
		ok = ok && strings.Contains(w.source[min(from, len(w.source)):], "\n")
	} else {
		body = w.text(r.Hdoc)
		rest = w.source[min(int(r.Hdoc.End().Offset()), len(w.source)):]
	}
	lines := strings.Split(body, "\n")
	for i, text := range lines {
		if r.Op == syntax.DashHdoc {
			text = strings.TrimLeft(text, "\t")
		}
		last := i+1 == len(lines)
		ok = ok && (text == delimiter) == last
	}
	if !ok || rest != "" && rest[0] != '\n' {
		w.opaque("bash may end a here-document elsewhere", w.text(r))
	}
}

// delimiterOf returns the delimiter of a here-document without its quotes.
func delimiterOf(wd *syntax.Word) (string, bool) {
	if wd == nil {
		return "", false
	}
	var out strings.Builder
	for _, p := range wd.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			out.WriteString(unescape(p.Value, false))
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			out.WriteString(p.Value)
		case *syntax.DblQuoted:
			inner, ok := delimiterOf(&syntax.Word{Parts: p.Parts})
			if !ok || p.Dollar {
				return "", false
			}
			out.WriteString(inner)
		default:
			return "", false
		}
	}
	return out.String(), true
}

// target records what is opened by a redirection.
func (w *walker) target(op syntax.RedirOperator, wd word, s *state, source string) {
	if wd.dynamic && !wd.glob && op != syntax.WordHdoc && mayBeSocket(wd.text) {
		// It is reported after the file that is probably meant.
		defer w.add(policy.Effect{Kind: policy.Net, Source: source})
	}
	if wd.text == "" && op != syntax.WordHdoc {
		wd.dynamic = true // bash refuses an empty name; a mistake is shown as one
	}
	switch op {
	case syntax.WordHdoc:
	case syntax.RdrIn:
		w.path(programs.Read, wd, s, source)
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
		w.path(programs.Write, wd, s, source)
	case syntax.RdrInOut:
		w.path(programs.Read, wd, s, source)
		w.path(programs.Write, wd, s, source)
	case syntax.DplOut, syntax.DplIn:
		if isDescriptor(wd) {
			return
		}
		if strings.HasPrefix(wd.text, "-") {
			w.opaque("bash ends this redirection after the -", source)
		}
		if op == syntax.DplIn {
			w.opaque("a descriptor is computed", source)
			return
		}
		w.path(programs.Write, wd, s, source)
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

// mayFail reports whether a redirection may fail, so that its command does not run: a
// file may not be there, a descriptor not be open.
func (w *walker) mayFail(redirs []*syntax.Redirect, s *state) bool {
	for _, r := range redirs {
		text := ""
		if r.Word != nil {
			text = r.Word.Lit()
		}
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		case syntax.DplOut, syntax.DplIn:
			if text == "-" {
				s.closed = true
			} else if s.closed || text != "0" && text != "1" && text != "2" {
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
