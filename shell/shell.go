// Package shell turns a bash script into its possible effects: the programs that it runs, the files and hosts that
// they use, and the variables that they see.
//
// It is an abstract interpreter. It walks a script in bash's order with a partly known state, follows every branch,
// and repeats loops until nothing changes. Anything that it does not understand, or that is known only at run time,
// is an Opaque effect, which no rule can allow. It knows no rules.
package shell

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toold/toold/internal/table"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/links"
	"github.com/toold/toold/shell/programs"
	"github.com/toold/toold/shell/texts"
)

// Limits of an analysis. What exceeds them is Opaque.
const (
	maxSteps  = 3000 // statements, counted in each iteration
	maxDepth  = 60   // of nested syntax
	maxInner  = 12   // nested scripts: bash -c, eval, functions
	maxWords  = 1024 // of one command
	maxBraces = 256  // alternatives of one word
	maxItems  = 24   // iterations of a for loop followed one by one
	maxDirs   = 8    // directories the shell may be in
	maxGlob   = 200  // names of one pattern
	maxLinks  = 64   // symbolic links created or moved
	maxNames  = 32   // trees whose names a pipe carries
	maxTurns  = 3    // iterations that change the directory
	globSteps = 20   // steps that one pattern costs
)

const tooMuch = "it holds too much to be followed"

// Options describe where scripts run.
type Options struct {
	Workspace string            // absolute and canonical
	Env       map[string]string // environment of the commands; other variables are unset
	Resolver  Resolver          // nil = the host's file system
}

// Analyser turns scripts into effects. It is safe for concurrent use.
type Analyser struct {
	workspace string
	env       map[string]string
	vars      table.Table[variable] // the initial state, from Env
	resolver  Resolver
}

// New returns an analyser.
func New(o Options) *Analyser {
	if o.Resolver == nil {
		o.Resolver = hostResolver{}
	}
	vars := table.New[variable]()
	for name, text := range o.Env {
		vars.Put(name, variable{value: value{text: text}})
	}
	vars.Share()
	return &Analyser{workspace: o.Workspace, env: o.Env, vars: vars, resolver: o.Resolver}
}

// Effects returns all possible effects of a script that starts in dir. The list is never empty.
func (a *Analyser) Effects(script, dir string) (effects []policy.Effect) {
	room := min(len(script), texts.MaxScript) / 32
	w := &walker{
		Analyser: a, steps: maxSteps, found: make([]policy.Effect, 0, 2*room), seen: make(map[uint64]bool, room),
		touched: touched{names: make(map[string]bool)}, canonical: make(map[string]string, room), globs: make(map[string]globbed), names: make(map[string]string), bodies: make(map[string][]*syntax.Stmt), scanned: make(map[string]struct{}),
	}
	// The parser may panic on malicious input.
	defer func() {
		if r := recover(); r != nil {
			w.suspects = 0
			w.opaque(fmt.Sprintf("its analysis failed (%v)", r), "")
			w.throughLinksMade()
			effects = slices.Clone(w.found)
		}
	}()
	s := &state{
		vars: a.vars, funcs: table.New[function](), locals: table.New[local](), dirs: []string{dir}, shown: true, jobless: true, params: params{known: true},
		disk: &disk{},
	}
	if _, set := a.env["OLDPWD"]; !set {
		s.left = s.dirs // cd - stays in dir
	}
	w.script(script, s)
	w.runTraps(s)
	if w.steps <= 0 {
		w.opaque(tooMuch, "")
	}
	w.throughLinksMade()
	if len(w.found) == 0 {
		w.add(policy.Effect{Kind: policy.Exec, Argv: w.idle(), Dirs: s.dirs, Source: script})
	}
	return slices.Clone(w.found) // because the caller keeps them, and w.found has much more room
}

// idle returns the command that is reported for a script without effects.
func (w *walker) idle() []policy.Word {
	if len(w.first) > 0 && listed("exit return break continue shift wait : true false", w.first[0].text) {
		return policyWords(w.first)
	}
	return []policy.Word{{Text: ":"}}
}

func (w *walker) throughLinksMade() {
	for _, e := range w.linked.Written() {
		w.add(e)
	}
}

type walker struct {
	*Analyser
	found    []policy.Effect // in order, without duplicates
	seen     map[uint64]bool // hashes of found
	steps    int             // remaining; at 0 the rest is Opaque
	depth    int
	inner    int
	wrapped  int    // nesting of programs that run programs
	first    []word // the first command; see idle
	hashes   bool   // an array may have non-numeric indexes
	posix    bool   // a shell other than bash runs the text, maybe without bash's builtins
	xargs    int    // how many of wrapped are xargs
	suspects int    // enclosing texts that may not run
	beside   int    // processes that run concurrently with the statement
	source   string // text being followed
	changes  int    // number of changes to variables, directories and functions

	process

	names      map[string]string         // what aliases and hashed names stand for
	renames    bool                      // they count
	bodies     map[string][]*syntax.Stmt // of functions
	separators string                    // all that IFS has been set to

	aliases []string // of git, that are being followed
	asked   int      // how often for an alias

	overridden int // number of variables that are set for one command
	touched    touched
	linked     links.Set

	output     string             // known output of the left side of a pipe
	piping     string             // the left side of the innermost pipe
	otherInput string             // known texts of descriptors other than standard input
	kept       strings.Builder    // known texts that the script keeps in variables and files
	saved      string             // those that may be in files
	passed     string             // those in variables that programs see
	saves      bool               // any output may go to a file
	loads      bool               // any program may run a file, by a variable such as PATH and BASH_ENV
	exports    bool               // what is set and defined is exported
	printed    []programs.Operand // trees whose names the left side of a pipe prints

	// Caches of file system lookups and of scanned texts.
	canonical map[string]string
	globs     map[string]globbed
	scanned   map[string]struct{}
}

// process is where the process that is followed continues.
type process struct {
	loops []*loop
	calls []*call
	exits []*state // at the next line
}

type globbed struct {
	names    []string
	complete bool
}

func listed(words, text string) bool { return programs.IsField(words, text) }

// script follows a text until a syntax error, as bash does.
func (w *walker) script(text string, s *state) {
	veiled := text
	if w.inner == 0 {
		veiled, w.saved = texts.Veil(text)
		w.keep(w.saved)
	}
	if why := texts.Refuse(text, veiled); why != "" {
		w.opaque(why, "")
	}
	if w.posix && texts.OtherwiseRead(text) {
		w.opaque(otherShell, "")
	}
	text = strings.ToValidUTF8(veiled[:min(len(veiled), texts.MaxScript)], "?") // refused texts are scanned, too
	if n := texts.DeepAt(text); n >= 0 {
		w.scan(text[n:]) // deeper nesting would overflow the parser's stack
		text = text[:n]
	}
	if w.inner > 0 {
		w.steps -= len(text) / 48
	}
	if w.inner >= maxInner {
		w.opaque("scripts within scripts go too deep", "")
		return
	}
	outer := w.source
	w.inner, w.source = w.inner+1, text
	w.parse(text, s)
	w.inner, w.source = w.inner-1, outer
}

func (w *walker) parse(text string, s *state) {
	parser := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true))
	var line, ended uint // where the previous statement ended
	over, exits := false, w.exits
	w.exits = nil
	each := func(stmt *syntax.Stmt, err error) bool {
		if over {
			return false // the parser reports its last error even after it was stopped
		}
		if err != nil {
			_, problem, _ := strings.Cut(err.Error(), ": ") // without its position
			if texts.BashRefuses(problem, text[min(int(ended), len(text)):]) {
				w.code("bash refuses it: "+problem, "")
			} else {
				w.opaque("bash may read it differently: "+problem, "")
			}
			over = true
			return false
		}
		if stmt.Pos().Line() > line {
			w.nextLine(s)
		}
		line, ended = stmt.End().Line(), stmt.End().Offset()
		w.stmt(stmt, s)
		s.settle()
		if w.steps <= 0 {
			w.scan(text[min(int(stmt.Pos().Offset()), len(text)):])
			over = true
		}
		return !over
	}
	parser.StmtsSeq(strings.NewReader(text))(each) // ranging over it would panic if the parser reports an error after the loop ended
	w.nextLine(s)
	w.exits = exits
}

// nextLine joins the states of failed expansions.
func (w *walker) nextLine(s *state) {
	for _, failed := range w.exits {
		w.join(s, failed)
	}
	w.exits = nil
}

func (w *walker) text(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(w.source) || from > to {
		return ""
	}
	return w.source[from:to]
}

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

// seed is random, so that no script can construct effects with equal hashes.
var seed = sync.OnceValue(maphash.MakeSeed)

func hashOf(e *policy.Effect) uint64 {
	var h maphash.Hash
	h.SetSeed(seed())
	maphash.WriteComparable(&h, [...]bool{e.Tree, e.Possible, e.Unknown, e.Code})
	maphash.WriteComparable(&h, [...]int{int(e.Kind), e.Port, len(e.Argv)})
	maphash.WriteComparable(&h, [...]string{e.Path, e.Part, e.Canonical, e.Host, e.Scheme, e.Method, e.Name, e.Why})
	for _, a := range e.Argv {
		maphash.WriteComparable(&h, a)
	}
	for _, dir := range e.Dirs {
		maphash.WriteComparable(&h, dir)
	}
	return h.Sum64()
}

func (w *walker) add(e policy.Effect) {
	e.Possible = e.Possible || w.suspects > 0
	if key := hashOf(&e); !w.linked.Take(e) && !w.seen[key] {
		w.seen[key] = true
		w.found = append(w.found, e)
	}
}

// suspected adds a text that may be run: by a shell if reader is <, by an unknown program if it is ?.
func (w *walker) suspected(reader, text string, code bool, source string) {
	w.add(policy.Effect{Kind: policy.Exec, Argv: []policy.Word{{Text: reader}, {Text: text}}, Possible: true, Code: code, Source: source})
}

func (w *walker) opaque(why, source string) { w.unfollowed(policy.Effect{Why: why, Source: source}) }

func (w *walker) code(why, source string) {
	w.unfollowed(policy.Effect{Why: why, Source: source, Code: true})
}

// unfollowed adds an effect, except in a text that may not run.
func (w *walker) unfollowed(e policy.Effect) {
	if e.Kind = policy.Opaque; w.suspects == 0 {
		w.add(e)
	}
}

// evaluates reports words that the shell evaluates: commands may be in them.
func (w *walker) evaluates(why, source string) {
	w.opaque(why, source)
	w.scan(source)
}

// unknownCommand reports a command that may be among the kept texts, followed by the known words of behind.
func (w *walker) unknownCommand(why, source string, behind ...word) {
	w.opaque(why, source)
	w.scanKept(false, behind...)
}

// scanKept adds the kept texts as what bash may run, for ask and deny rules, or as the content of a file that a program obeys.
func (w *walker) scanKept(obeyed bool, behind ...word) {
	if w.steps -= w.kept.Len() / 128; w.kept.Len() == 0 {
		return
	}
	unclear := func(a word) bool { return !a.known() || strings.ContainsAny(a.text, " \t\n") }
	if n := slices.IndexFunc(behind, unclear); n >= 0 {
		behind = behind[:n]
	}
	w.suspected("<", w.kept.String()+" "+spaced(behind), obeyed, "")
}

// keep adds a text that the script keeps, from which it may run commands later.
func (w *walker) keep(text string) {
	if w.kept.Len()+len(text) <= texts.MaxScript {
		w.kept.WriteString(text)
	}
}
