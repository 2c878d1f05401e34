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
	maxSteps  = 3000    // statements, repetitions of loops included; long ones count more
	maxDepth  = 60      // of nested syntax
	maxInner  = 12      // of texts that are scripts: bash -c, eval, functions
	maxWords  = 1024    // of one command, after expansion
	maxBraces = 256     // alternatives of one word
	maxItems  = 24      // of a for loop that are followed one by one
	maxDirs   = 4       // folders the shell may be in
	maxGlob   = 200     // names a pattern matches now
	maxPaths  = 1 << 18 // letters of all paths together
	maxLinks  = 64      // symbolic links that are made or moved
	maxNames  = 32      // trees whose names go through a pipe
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
	room := len(script) / 32 // of what a long text holds
	w := &walker{
		analyser: a, steps: maxSteps, paths: maxPaths, told: told{seen: make(map[effectKey]struct{}, room)},
		canonical: make(map[string]string, room), globs: make(map[string]globbed), repositories: make(map[string]bool),
		names: make(map[syntax.Node]map[string]bool), readonly: make(map[string]bool), arrays: make(map[string]bool),
	}
	// A parser that fails on a hostile text is one more thing that is not known.
	defer func() {
		if r := recover(); r != nil {
			w.opaque(fmt.Sprintf("its analysis failed (%v)", r), "")
			effects = w.told.all()
		}
	}()
	s := &state{
		vars: make(map[string]value), dirs: []string{dir}, funcs: make(map[string]*syntax.Stmt), exact: true,
	}
	for name, text := range a.env {
		s.vars[name] = value{text: text}
	}
	w.script(script, s)
	for i := 0; i < len(w.traps) && w.steps > 0; i++ {
		w.script(w.traps[i], w.fork(s))
	}
	if w.steps <= 0 {
		w.exhausted()
	}
	if len(w.told.blocks) == 0 {
		// Only assignments, comments and the like: bash itself, doing nothing.
		w.exec([]policy.Word{{Text: ":"}}, s, script)
	}
	return w.told.all()
}

// walker goes through one script in the order bash would.
type walker struct {
	*analyser
	told    told
	steps   int // left
	paths   int // letters of paths that may still be told
	depth   int
	inner   int
	wrapped int             // programs that run programs, around the one being followed
	calls   []string        // functions being followed
	locals  map[string]bool // variables of the function being followed
	source  string          // of the text being followed
	traps   []string        // texts that run when the script ends
	changes int             // of variables, folders and functions so far
	doubts  doubts          // whether what comes next runs
	closed  bool            // a descriptor was closed

	input string // what the next command finds on its standard input, as far as it is known
	said  string // what the left side of a pipe prints, as far as it is known

	procDepth int // how often the path being followed has led from /proc into /proc

	printed []policy.Operand // trees whose names the left side of a pipe prints
	fed     []policy.Operand // trees whose names the right side is given
	made    []string         // links that the script makes
	moved   []string         // where it may have put links that lay elsewhere
	xargs   int              // how many xargs are around the program being followed

	readonly map[string]bool // variables that cannot be set
	arrays   map[string]bool // variables that may be arrays

	// What was asked before: the file system's answers, and texts that were scanned.
	canonical    map[string]string
	repositories map[string]bool // folders in which git finds another repository than the workspace's
	globs        map[string]globbed
	scanned      map[string]struct{}
	names        map[syntax.Node]map[string]bool // variables that a part of the script assigns
}

// globbed is what a pattern matched.
type globbed struct {
	names    []string
	complete bool
}

// script analyses a text. Statements before a syntax error are judged too: bash
// runs them before it comes to the error.
func (w *walker) script(text string, s *state) {
	veiled := text
	if w.inner == 0 {
		veiled = veil(text)
	}
	if why := refuse(text, veiled); why != "" {
		w.opaque(why, "")
	}
	text = veiled
	if len(text) > maxScript {
		text = text[:maxScript]
	}
	text = strings.ToValidUTF8(text, "?") // what is refused is still scanned
	if n := deepAt(text); n >= 0 {
		w.scan(text[n:]) // the parser would follow it down
		text = text[:n]
	}
	if w.inner > 0 {
		w.steps -= len(text) / 48 // the text is parsed once more
	}
	if w.inner++; w.inner > maxInner {
		w.opaque("scripts within scripts go too deep", "")
		w.inner--
		return
	}
	outer := w.source
	w.source = text
	parser := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true))
	var line uint // where the statement before ended
	over := false
	each := func(stmt *syntax.Stmt, err error) bool {
		if over {
			return false // the parser tells its last error even to who has stopped listening
		}
		if err != nil {
			w.opaque("bash may read it differently: "+syntaxProblem(err), "")
			over = true
			return false
		}
		if w.inner == 1 && stmt.Pos().Line() > line {
			w.doubts = doubts{}
		}
		line = stmt.End().Line()
		w.stmt(stmt, s)
		s.settle()
		if w.steps <= 0 {
			w.exhausted()
			w.scan(text[min(int(stmt.Pos().Offset()), len(text)):])
			over = true
		}
		return !over
	}
	parser.StmtsSeq(strings.NewReader(text))(each) // a range statement would panic when it is told after its end
	w.source = outer
	w.inner--
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
		w.steps = 0 // what is not entered is scanned with the rest
		return false
	}
	w.depth++
	return true
}

func (w *walker) leave() { w.depth-- }
