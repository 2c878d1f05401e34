package bash

import (
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toold/toold/policy"
)

// The bounds of an analysis. What goes beyond them is Opaque: it is never
// skipped.
const (
	maxSteps  = 20000 // statements, repetitions of loops included
	maxDepth  = 60    // of nested syntax
	maxInner  = 12    // of texts that are scripts: bash -c, eval, functions
	maxWords  = 4096  // of one command, after expansion
	maxBraces = 256   // alternatives of one word
	maxItems  = 24    // of a for loop that are followed one by one
	maxDirs   = 8     // folders the shell may be in
	maxGlob   = 200   // names a pattern matches now
)

// analyser turns scripts into effects.
type analyser struct {
	workspace string
	env       map[string]string // of the commands; a variable that is not here is unset
	resolver  Resolver
}

// analyse lists everything a script can do, as far as it is known before it
// runs. It is never empty. dir is where the script starts.
func (a *analyser) analyse(script, dir string) (effects []policy.Effect) {
	w := &walker{analyser: a, steps: maxSteps, canonical: make(map[string]string), globs: make(map[string]globbed), seen: make(map[string]bool), names: make(map[syntax.Node]map[string]bool)}
	// A parser that fails on a hostile text is one more thing that is not known.
	defer func() {
		if r := recover(); r != nil {
			w.opaque(fmt.Sprintf("its analysis failed (%v)", r), "")
			effects = w.effects
		}
	}()
	s := &state{
		vars: make(map[string]value), dirs: []string{dir}, funcs: make(map[string]*syntax.Stmt), exact: true,
	}
	for name, text := range a.env {
		s.vars[name] = value{text: text}
	}
	w.script(script, s)
	if len(w.effects) == 0 {
		// Only assignments, comments and the like: bash itself, doing nothing.
		w.exec([]policy.Word{{Text: ":"}}, s, script)
	}
	return w.effects
}

// walker goes through one script in the order bash would.
type walker struct {
	*analyser
	effects []policy.Effect
	steps   int // left
	depth   int
	inner   int
	calls   []string // functions being followed
	source  string   // of the text being followed

	// What was asked before: the file system's answers, and effects on paths.
	canonical map[string]string
	globs     map[string]globbed
	seen      map[string]bool
	names     map[syntax.Node]map[string]bool // variables that a part of the script assigns
}

// globbed is what a pattern matched.
type globbed struct {
	names    []string
	complete bool
}

// add records an effect; on paths and variables, once.
func (w *walker) add(e policy.Effect) {
	if e.Kind != policy.Exec {
		key := fmt.Sprint(e.Kind, e.Tree, e.Possible, e.Unknown, e.Path, "\x00", e.Host, e.Port, e.Name, e.Why, "\x00", e.Canonical)
		if w.seen[key] {
			return
		}
		w.seen[key] = true
	}
	w.effects = append(w.effects, e)
}

// opaque records that something cannot be known.
func (w *walker) opaque(why, source string) {
	w.add(policy.Effect{Kind: policy.Opaque, Why: why, Source: source})
}

// exec records that a command runs.
func (w *walker) exec(argv []policy.Word, s *state, source string) {
	w.add(policy.Effect{Kind: policy.Exec, Argv: argv, Dirs: s.dirs, Source: source})
}

// script analyses a text. Statements before a syntax error are judged too: bash
// runs them before it comes to the error.
func (w *walker) script(text string, s *state) {
	if why := refuse(text); why != "" {
		w.opaque(why, "")
	}
	if len(text) > maxScript {
		text = text[:maxScript]
	}
	text = strings.ToValidUTF8(text, "?") // what is refused is still scanned
	if w.inner++; w.inner > maxInner {
		w.opaque("scripts within scripts go too deep", "")
		w.inner--
		return
	}
	outer := w.source
	w.source = text
	parser := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true))
	for stmt, err := range parser.StmtsSeq(strings.NewReader(text)) {
		if err != nil {
			w.opaque("bash may read it differently: "+syntaxProblem(err), "")
			break
		}
		w.stmt(stmt, s)
		s.settle()
		if w.steps <= 0 {
			w.scan(stmt)
		}
	}
	w.source = outer
	w.inner--
}

// scan records the literal commands of a statement for the rules that deny, where
// the bounds of the analysis are used up.
func (w *walker) scan(stmt *syntax.Stmt) {
	w.opaque("it holds too many commands", "")
	syntax.Walk(stmt, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		argv := make([]policy.Word, len(call.Args))
		for i, arg := range call.Args {
			text := arg.Lit()
			argv[i] = policy.Word{Text: unescape(text, false), Dynamic: text == ""}
		}
		w.add(policy.Effect{Kind: policy.Exec, Argv: argv, Possible: true})
		return true
	})
}

// syntaxProblem returns the parser's message without its position.
func syntaxProblem(err error) string {
	if e, ok := err.(syntax.ParseError); ok {
		return e.Text
	}
	return err.Error()
}

// text returns the part of the script a node stands for, for people.
func (w *walker) text(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(w.source) || from > to {
		return ""
	}
	return w.source[from:to]
}

// enter guards the recursion over nested syntax.
func (w *walker) enter() bool {
	if w.depth >= maxDepth {
		w.opaque("it nests too deeply", "")
		return false
	}
	w.depth++
	return true
}

func (w *walker) leave() { w.depth-- }
