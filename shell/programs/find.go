package programs

import (
	"slices"
	"strings"

	"github.com/toold/toold/internal/lazyregexp"
)

const findOperators = "-not ! ( ) -o -or -a -and ,"

func (c *Command) find(words []Word) {
	f := findReader{tests: program("find").tests, safe: true, lists: []findList{{}}}
	isTree := func(o Operand) bool { return o.Tree }
	for i := 0; i < len(words); i++ {
		i += f.word(words, i)
	}
	if !f.rooted {
		f.add(Word{Text: "."}, Read)
	}
	roots := f.operands
	for i := range f.started {
		f.found(&f.started[i], roots)
	}
	for len(f.lists) > 1 {
		f.close()
	}
	c.Runs = append(c.Runs, f.started...)
	if f.opaque && c.Opaque == "" {
		c.Opaque, c.Anything = unknownPart("find"), true
	}
	f.printed = together(f.printed, f.lists[0].all().read())
	c.Known, c.Prints = true, append(inParts(roots, f.printed, isTree), f.exact(roots)...)
	if f.runs {
		c.Operands = append(inParts(roots, f.ran, isTree), f.exact(roots)...)
	} else {
		c.Operands = inParts(roots, []string{PartNames}, isTree)
	}
	if f.deletes {
		f.safe = false
		for _, o := range inParts(roots, f.deleted, isTree) {
			if o.Tree {
				o.Kind = Write
				c.Operands = append(c.Operands, o)
			}
		}
	}
	if f.safe {
		c.Covers = CoversRead
	}
}

type findReader struct {
	tests        map[string]*flag
	operands     []Operand
	started      []Run
	opaque       bool // an unknown word may be an operator or an action
	safe         bool
	deletes      bool
	runs         bool // commands read the found files
	rooted       bool
	inExpression bool

	lists []findList // outermost first
	names []string   // exact names

	// Endings of the names that are printed, read by commands, and deleted.
	printed, ran, deleted []string
}

// findNames describes the files that reach a part of the expression.
type findNames struct {
	ends      []string // nil = any
	extension bool
	files     bool
	empty     bool
	again     bool // tools recreate the directories
}

// and returns the files that pass both. The first test determines the names.
func (n findNames) and(o findNames) findNames {
	if n.ends == nil {
		n.ends, n.extension = o.ends, o.extension
	}
	n.files, n.empty = n.files || o.files, n.empty || o.empty
	n.again = n.again || o.again
	return n
}

func (n findNames) or(o findNames) findNames {
	ends := slices.Concat(n.ends, o.ends)
	if n.ends == nil || o.ends == nil || len(ends) > maxParts {
		ends = nil
	}
	return findNames{
		ends, n.extension && o.extension, n.files && o.files,
		n.empty && o.empty, n.again && o.again,
	}
}

// read returns the endings of what is read. A found directory may contain any names.
func (n findNames) read() []string {
	if !n.files && !n.extension {
		return nil
	}
	return n.ends
}

// findList is a list in the expression: the files at its start, here, and after previous
// alternatives.
type findList struct {
	begin, here, before findNames
	some                bool
	not                 bool
}

func (l *findList) all() findNames {
	if l.some {
		return l.here.or(l.before)
	}
	return l.here
}

func (l *findList) narrow(n findNames) {
	if !l.not {
		l.here = l.here.and(n)
	}
	l.not = false
}

func (f *findReader) operator(name string) {
	l := &f.lists[len(f.lists)-1]
	switch name {
	case "-not", "!":
		l.not = !l.not
	case "-o", "-or", ",":
		l.before, l.some, l.here, l.not = l.all(), true, l.begin, false
	case "(":
		if len(f.lists) < maxParts {
			f.lists = append(f.lists, findList{begin: l.here, here: l.here})
		} else {
			f.opaque = true
		}
	case ")":
		f.close()
	}
}

func (f *findReader) close() {
	if n := len(f.lists) - 1; n > 0 {
		all := f.lists[n].all()
		f.lists = f.lists[:n]
		f.lists[n-1].narrow(all)
	}
}

func (f *findReader) here() findNames { return f.lists[len(f.lists)-1].here }

func (f *findReader) exact(roots []Operand) (list []Operand) {
	for _, name := range f.names {
		for _, root := range roots {
			if !root.Word.Dynamic {
				list = append(list, Operand{Word: Word{Text: strings.TrimSuffix(root.Word.Text, "/") + "/" + name}, Kind: Read})
			}
		}
	}
	return list
}

func (f *findReader) name(w Word, exactly bool) (n findNames) {
	if !w.Dynamic && len(f.names) < maxNested && !strings.ContainsAny(w.Text, "*?[\\/") {
		f.names = append(f.names, w.Text)
		if folded := strings.ToLower(w.Text); !exactly && folded != w.Text {
			f.names = append(f.names, folded)
		}
	}
	n.extension, n.again = strings.HasPrefix(w.Text, "*."), exactly && !w.Dynamic && MadeAgain(w.Text)
	for _, end := range nameEnds(w) {
		if end == PartNames || !strings.Contains(end, ".") || strings.HasSuffix(strings.ToLower(end), ".git") {
			end = ""
		}
		n.ends = append(n.ends, end)
	}
	return n
}

// together joins the names of several actions. "" stands for any name.
func together(before, ends []string) []string {
	if len(ends) == 0 || len(before) > maxParts {
		return []string{""}
	}
	if n := len(before) - len(ends); n >= 0 && slices.Equal(before[n:], ends) {
		return before
	}
	for _, end := range ends {
		if !slices.Contains(before, end) {
			before = append(before, end)
		}
	}
	return before
}

func (f *findReader) add(w Word, kind Kind) {
	f.operands = append(f.operands, Operand{Word: w, Kind: kind, Tree: true})
}

// mayBeRoot reports whether an unknown word is taken for a directory, as words of rm are for files: one before the
// expression, which makes no command of what follows.
func (f *findReader) mayBeRoot(words []Word, i int) bool {
	unknown := words[i] == Word{Dynamic: true} || words[i] == Word{Dynamic: true, Fresh: true}
	if !unknown || f.inExpression {
		return false
	}
	if i+1 == len(words) {
		return !f.rooted
	}
	test := f.tests[words[i+1].Text]
	if test == nil || words[i+1].Dynamic {
		return false
	}
	// The value of the test is an action if the unknown word is one that takes the test as its own value.
	valued := test.values != "" && i+2 < len(words)
	return !valued || !action().MatchString(words[i+2].Text)
}

// word returns the number of arguments that follow words[i].
func (f *findReader) word(words []Word, i int) int {
	w := words[i]
	test, operator := f.tests[w.Text], IsField(findOperators, w.Text)
	known := test != nil || operator
	flag := known || strings.HasPrefix(w.Text, "-")
	switch unsure := flag || w.Text == ""; {
	case f.mayBeRoot(words, i):
		f.rooted, f.safe = true, false
		f.add(w, Read)
	case w.Many || w.Dynamic && unsure:
		f.safe, f.opaque = false, true
		f.add(w, Read)
	case operator:
		f.inExpression = true
		f.operator(w.Text)
	case known:
		f.test(words, i)
		return f.takes(words, i, len(test.values))
	case flag || f.inExpression:
		return f.action(words, i)
	default:
		f.rooted = true
		f.add(w, Read)
	}
	return 0
}

var action = lazyregexp.New(`^-[a-z]`)

func (f *findReader) takes(words []Word, i, n int) int {
	for _, w := range words[i+1 : min(i+1+n, len(words))] {
		if w.Many {
			f.safe, f.opaque = false, true
			f.add(w, Read)
		}
	}
	return n
}

func (f *findReader) test(words []Word, i int) {
	name, value, n := words[i].Text, Word{Dynamic: true}, findNames{}
	if i+1 < len(words) {
		value = words[i+1]
	}
	switch name {
	case "-L", "-H", "-P", "-E", "-D", "-O1", "-O2", "-O3", "--":
		if name == "-L" {
			f.add(Word{Dynamic: true}, Read)
		}
		return
	case "-follow":
		f.add(Word{Dynamic: true}, Read)
	case "-print", "-print0", "-printf", "-ls":
		f.printed = together(f.printed, f.here().read())
	case "-type":
		n.files = value == Word{Text: "f"}
	case "-name", "-iname":
		n = f.name(value, name == "-name")
	case "-empty":
		n.empty = true
	}
	f.inExpression = true
	f.lists[len(f.lists)-1].narrow(n)
}

func (f *findReader) action(words []Word, i int) (taken int) {
	f.inExpression = true
	switch name := words[i].Text; {
	case IsField("-exec -execdir -ok -okdir", name):
		f.runs, f.ran = true, together(f.ran, f.here().read())
		taken = f.command(words[i:], i+1)
	case name == "-delete":
		f.delete()
	case strings.HasPrefix(name, "-newer"):
		taken = f.takes(words, i, 1)
	case name == "-files0-from":
		f.safe = false
		f.add(Word{Dynamic: true}, Read)
		taken = f.file(words, i, Read, 1)
	case name == "-fprintf":
		taken = f.file(words, i, Write, 2)
	case IsField("-fprint -fprint0 -fls", name):
		taken = f.file(words, i, Write, 1)
	default:
		f.safe, f.opaque = false, f.opaque || strings.HasPrefix(name, "-")
	}
	f.lists[len(f.lists)-1].narrow(findNames{})
	return taken
}

func (f *findReader) file(words []Word, i int, kind Kind, values int) int {
	if f.safe = false; i+1 < len(words) {
		f.operands = append(f.operands, Operand{Word: words[i+1], Kind: kind})
	}
	return f.takes(words, i, values)
}

func (f *findReader) delete() {
	here := f.here()
	ends := slices.Clone(here.ends)
	if here.empty && len(ends) == 0 {
		ends = []string{""}
	}
	for i, end := range ends {
		if end == "" {
			ends[i] = PartSome
		}
	}
	f.deletes, f.deleted = true, together(f.deleted, ends)
}

// command follows -exec and returns its number of words.
func (f *findReader) command(words []Word, at int) int {
	ends := func(i int) bool { return words[i].Text == ";" || words[i].Text == "+" && words[i-1].Text == "{}" }
	end := 1
	for end < len(words) && !ends(end) {
		f.opaque = f.opaque || words[end].mayBe(";") || words[end].Many
		end++
	}
	if end < len(words) && words[end].Text == "+" && strings.HasPrefix(words[0].Text, "-ok") {
		f.opaque = true // otherwise the command continues
	}
	run := Run{Argv: words[1:end], At: at + 1, Replaces: "{}", Found: Word{Fresh: f.here().again}}
	if strings.HasSuffix(words[0].Text, "dir") {
		run.Dir = Word{Dynamic: true}
	}
	if len(run.Argv) > 0 {
		if removesFiles(run.Argv) {
			f.delete()
		}
		f.started = append(f.started, run)
	}
	return end
}

func (f *findReader) found(run *Run, roots []Operand) {
	switch run.Found = (Word{Dynamic: true, Fresh: run.Found.Fresh}); {
	case run.Dir.Dynamic:
		run.Found.Text = "./"
	case len(roots) == 1 && f.rooted && !roots[0].Word.Dynamic:
		run.Found.Text = roots[0].Word.Text
	}
}

// MadeAgain reports whether tools recreate a directory of this name, such as a cache.
func MadeAgain(name string) bool {
	return IsField("node_modules __pycache__ .pytest_cache .mypy_cache .ruff_cache .tox .nox .gradle .next .nuxt .turbo .parcel-cache .terraform .eggs htmlcov", name)
}

func unknownPart(program string) string {
	return "a word of " + program + " that is known only when it runs may be a part of its structure"
}

func removesFiles(argv []Word) bool {
	return IsField("rm unlink", baseName(argv[0].Text)) && !slices.ContainsFunc(argv[1:], func(w Word) bool {
		if strings.HasPrefix(w.Text, "--") {
			return strings.HasPrefix(w.Text, "--r")
		}
		return strings.HasPrefix(w.Text, "-") && strings.ContainsAny(w.Text, "rR")
	})
}
