package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toold/toold/policy"
)

type declaration struct {
	builtin                           string
	export, readonly, array, integer  bool
	hash                              bool
	global, remove, prints, functions bool
	named, refers                     bool
}

func (w *walker) declare(c *syntax.DeclClause, s *state) {
	d := declaration{builtin: c.Variant.Value}
	if w.posix {
		splits := func(as *syntax.Assign) bool {
			_, plain := plainText(as.Value)
			quoted := as.Value != nil && len(as.Value.Parts) == 1 && strings.ContainsAny(w.text(as.Value)[:1], `'"`)
			return as.Value != nil && !plain && !quoted
		}
		if w.otherShell(d.builtin, false, s, w.text(c)); slices.ContainsFunc(c.Args, splits) {
			defer w.anyVariable(s, w.text(c))
		}
	}
	if !listed("declare typeset local export readonly", d.builtin) {
		w.opaque("this form of declaration is not followed", w.text(c))
	}
	defer w.outsideOfFunctions(&d, s)()
	var then []func()
	source := w.text(c)
	for _, as := range c.Args {
		if w.steps--; w.steps <= 0 {
			return
		}
		then = append(then, w.declareArg(&d, as, s, source))
	}
	for _, set := range then {
		set()
	}
}

// anyVariable follows a value that other shells split into words: each word may set any variable.
func (w *walker) anyVariable(s *state, source string) {
	w.add(policy.Effect{Kind: policy.Env, Source: source})
	for name := range s.vars.All() {
		w.put(s, name, variable{value: unknown()})
	}
	s.strange, s.split = true, true
	w.changes++
}

// declareArg expands an argument and returns a function that sets it: bash expands all arguments before it sets any.
func (w *walker) declareArg(d *declaration, as *syntax.Assign, s *state, source string) (set func()) {
	if words, ok := w.declaredWords(as, s); ok {
		return func() {
			for _, a := range words {
				w.declareWord(d, a, s, source)
			}
		}
	}
	name := as.Name.Value
	if as.Array != nil || as.Index != nil {
		return func() {
			w.declareAs(d, &declaration{integer: d.integer, hash: d.hash}, name, s, source, func() {
				w.declaredIndex(as, s)
				w.assign(as, s, d.export)
			})
			w.mark(&declaration{array: true}, name, s)
		}
	}
	v := w.assigned(as.Value, s)
	return func() {
		if as.Append {
			v = w.appended(s.get(name), v)
		}
		w.declareValue(d, name, v, s, source)
	}
}

// declaredIndex follows an index of an associative array that declare expands a second time.
func (w *walker) declaredIndex(as *syntax.Assign, s *state) {
	if as.Index == nil || !s.get(as.Name.Value).hash {
		return
	}
	key, _ := as.Index.(*syntax.Word)
	if _, plain := plainText(key); !plain {
		w.evaluates("an array's index is evaluated", w.text(as))
	}
}

func (w *walker) declaredWords(as *syntax.Assign, s *state) (words []word, ok bool) {
	switch {
	case as.Name == nil:
		return w.words([]*syntax.Word{as.Value}, s), true
	case as.Naked:
		return []word{plainWord(as.Name.Value)}, true
	case as.Array != nil || as.Index != nil || !hasBraces(as.Value):
		return nil, false
	}
	if list, why := w.braces(as.Value); why != "" || len(list) > 1 || strings.Contains(w.text(as), "..") {
		w.opaque("braces make several words of it", w.text(as))
	}
	return nil, false // bash leaves them unchanged
}

func (w *walker) declareValue(d *declaration, name string, v value, s *state, source string) {
	w.declareAs(d, &declaration{integer: d.integer, array: d.array}, name, s, source, func() {
		compound := !v.known() || strings.HasPrefix(v.text, "(")
		if s.get(name).array && compound {
			w.opaque("the text of an array is evaluated", source)
		}
		w.setVar(name, v, s, d.export)
	})
}

// declareAs follows what sets a variable that has the attributes of first then, and later those of d.
func (w *walker) declareAs(d, first *declaration, name string, s *state, source string, set func()) {
	if d.named = true; d.functions || d.prints {
		w.opaque("a declaration that prints may assign nothing", source)
	}
	w.enterScope(d, name, s)
	w.mark(first, name, s)
	set()
	w.mark(d, name, s)
}

func (w *walker) declareWord(d *declaration, a word, s *state, source string) {
	text, rest, assigns := strings.Cut(a.text, "=")
	flag := a.known() && len(a.text) > 1 && a.beginsWith("-+")
	d.named = d.named || !flag
	switch {
	case a.several() || a.dynamic && !assigns:
		w.opaque("the name of a variable is known only when it runs", source)
	case flag && !d.named:
		w.declareFlag(d, a.text, source)
	case d.functions:
		if d.marks() {
			w.exportFunction(a.text, s, source)
		}
	case d.prints && !assigns:
	case !syntax.ValidName(text):
		w.evaluates("an array's index is evaluated", text)
	case assigns:
		w.declareValue(d, text, value{text: rest, dynamic: a.dynamic}, s, source)
	default:
		w.declareName(d, text, s)
	}
}

func (w *walker) exportFunction(name string, s *state, source string) {
	w.opaque("a function is exported, or cannot be set", source)
	for _, body := range w.bodies[name] {
		w.callFunction(body, nil, w.fork(s), source)
	}
}

func (d *declaration) marks() bool {
	return d.export || d.readonly || listed("export readonly", d.builtin)
}

var fewFlags = map[string]string{"export": "fnp", "readonly": "aAfp"}

func (w *walker) declareFlag(d *declaration, text, source string) {
	if text == "--" {
		d.named = true
		return
	}
	if allowed, few := fewFlags[d.builtin]; few && (text[0] == '+' || strings.Trim(text[1:], allowed) != "") {
		w.opaque("bash refuses this flag, and assigns nothing", source)
	}
	if text[0] == '+' {
		d.remove = true
		if text != "+x" {
			w.opaque("this kind of variable changes how it is set", source)
		}
		return
	}
	flags := map[rune]*bool{
		'x': &d.export, 'r': &d.readonly, 'a': &d.array, 'A': &d.hash, 'i': &d.integer, 'g': &d.global, 'p': &d.prints, 'f': &d.functions, 'F': &d.functions,
	}
	w.hashes = w.hashes || strings.Contains(text, "A")
	for _, c := range text[1:] {
		if fewFlags[d.builtin] != "" && c == 'p' { // -p prints only if there are no names
		} else if c == 'n' && d.builtin == "export" {
			d.remove = true
		} else if flags[c] != nil {
			*flags[c] = true
		} else {
			d.refers = c == 'n'
			w.opaque("this kind of variable is evaluated, changed when it is set, or another one's name", source)
		}
	}
}

func (w *walker) declareName(d *declaration, name string, s *state) {
	before, existed := s.vars.Get(name)
	scoped := w.enterScope(d, name, s)
	if scoped && (listed(numericNames, name) || name == "PWD") {
		w.opaque(name+" is not the shell's own any more", name)
	}
	old := s.get(name)
	if d.export || d.builtin == "export" && !d.remove {
		w.setVar(name, old.value, s, true)
	} else if scoped {
		if w.changes++; policy.IsDangerousEnv(name) {
			w.setVar(name, value{}, s, false)
		}
		w.put(s, name, variable{value: old.value.or(value{}), exported: old.exported})
	}
	w.mark(d, name, s)
	v := s.get(name)
	unset := !existed || before.unset || scoped
	v.unset = v.unset || unset
	w.put(s, name, v)
}

func (w *walker) mark(d *declaration, name string, s *state) {
	if d.integer && listed(shellNames, name) {
		w.opaque("the shell evaluates what it sets "+name+" to", name)
	}
	v := s.get(name)
	v.readonly = v.readonly || d.readonly || d.builtin == "readonly"
	indexed := v.array || setByShell(name)
	v.hash = v.hash || d.hash && !indexed
	v.array = v.array || d.array || d.hash
	v.integer = v.integer || d.integer
	v.exported = v.exported || d.export
	v.refers = v.refers || d.refers
	w.put(s, name, v)
}

func (w *walker) enterScope(d *declaration, name string, s *state) bool {
	_, own := s.locals.Get(name)
	hides := own || w.overridden > 0 || len(w.calls) > 1
	if hides && d.global {
		w.opaque("a variable of a function hides the global one", name)
	}
	if d.builtin == "export" {
		d.export = !d.remove
	}
	if d.global || len(w.calls) == 0 || listed("export readonly", d.builtin) {
		return false
	}
	if !own {
		before, exists := s.vars.Get(name)
		w.steps -= s.locals.Put(name, local{before: before, unset: !exists}) / 32
		if exists {
			before.array, before.hash, before.integer = false, false, false
			w.put(s, name, before)
		}
	}
	return true
}

func (w *walker) leaveScope(s *state) {
	for name, l := range s.locals.All() {
		w.restore(name, l, s)
	}
}

// restore resets a variable to its value outside of a function, or before a command.
func (w *walker) restore(name string, l local, s *state) {
	switch {
	case l.unsure:
		v := s.get(name).or(l.before)
		v.value = unknown()
		w.put(s, name, v)
	case l.unset:
		w.drop(s, name)
	default:
		w.put(s, name, l.before)
	}
}

// declareWords follows declarations that the parser does not recognise, such as "command export".
func (w *walker) declareWords(args []word, s *state, source string) {
	d := declaration{builtin: args[0].text}
	if w.posix {
		w.otherShell(d.builtin, false, s, source)
	}
	if slices.ContainsFunc(args, func(a word) bool { return a.many }) {
		w.opaque("the words of `"+d.builtin+"` are known only when it runs", source)
		return
	}
	defer w.outsideOfFunctions(&d, s)()
	for _, a := range args[1:] {
		w.declareWord(&d, a, s, source)
	}
}

// outsideOfFunctions returns what to do after a "local" that fails.
func (w *walker) outsideOfFunctions(d *declaration, s *state) func() {
	w.changes++
	if d.builtin != "local" || len(w.calls) > 0 {
		return func() {}
	}
	before := w.fork(s)
	return func() { w.join(s, before) }
}
