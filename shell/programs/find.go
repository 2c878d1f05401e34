package programs

import (
	"slices"
	"strings"
)

// findTests are find's tests and actions that run and change nothing, with the
// number of words that follow them.
var findTests = map[string]int{
	"-name": 1, "-iname": 1, "-path": 1, "-ipath": 1, "-wholename": 1, "-regex": 1, "-iregex": 1, "-regextype": 1,
	"-type": 1, "-xtype": 1, "-size": 1, "-mtime": 1, "-mmin": 1, "-atime": 1, "-amin": 1, "-ctime": 1, "-cmin": 1,
	"-maxdepth": 1, "-mindepth": 1, "-perm": 1, "-user": 1, "-group": 1, "-uid": 1, "-gid": 1, "-links": 1, "-inum": 1,
	"-lname": 1, "-ilname": 1, "-newermt": 1, "-fstype": 1, "-printf": 1, "-D": 1,
	"-print": 0, "-print0": 0, "-ls": 0, "-empty": 0, "-prune": 0, "-depth": 0, "-d": 0, "-xdev": 0, "-mount": 0,
	"-not": 0, "!": 0, "(": 0, ")": 0, "-o": 0, "-or": 0, "-a": 0, "-and": 0, ",": 0, "-true": 0, "-false": 0, "-quit": 0,
	"-readable": 0, "-writable": 0, "-executable": 0, "-nouser": 0, "-nogroup": 0, "-daystart": 0, "-noleaf": 0,
	"-follow": 0, "-L": 0, "-H": 0, "-P": 0, "-O1": 0, "-O2": 0, "-O3": 0,
}

// find reads find's roots, its expression, and the commands in it.
func (c *Command) find(words []Word) {
	f := findReader{safe: true, c: c}
	for i := 0; i < len(words); i++ {
		i += f.word(words, i)
	}
	if !f.rooted {
		f.add(Word{Text: "."}, Read)
	}
	roots := f.operands
	for i := range c.Runs {
		f.found(&c.Runs[i], roots)
	}
	c.Known, c.Prints = true, append(f.named(roots, f.read()), f.exact(roots)...)
	if f.runs {
		c.Operands = append(f.named(roots, f.ran), f.exact(roots)...)
	} else {
		c.Operands = f.named(roots, []string{PartNames})
	}
	if f.deletes {
		f.safe = false
		for _, o := range f.named(roots, f.deleted) {
			o.Kind = Write
			c.Operands = append(c.Operands, o)
		}
	}
	if f.safe {
		c.Covers = CoversRead
	}
}

// findReader reads find's words one by one.
type findReader struct {
	c            *Command
	operands     []Operand
	safe         bool
	deletes      bool
	runs         bool // commands that may read what is found
	rooted       bool
	inExpression bool

	// The ends of the names of what is found, as far as they are known: after the
	// words that were read, where commands run, and where files are deleted.
	ends, ran, deleted []string
	names              []string // that tests give in full
	either             bool     // the tests are not just one after the other
	empty              bool     // only what is empty is found
	again              bool     // what is found has a name of what tools make again
	files, extension   bool     // only files are found, such as have an extension
}

// named returns the trees that are read, or changed, for the files of some names
// in them.
func (f *findReader) named(roots []Operand, ends []string) []Operand {
	if len(ends) == 0 || f.either && !slices.Contains(ends, PartNames) {
		ends = []string{""}
	}
	return inParts(roots, ends, func(Operand) bool { return true })
}

// exact returns the files of the names that tests give in full, as if they were in the roots.
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

// name reads a test of names. The first says what is found; others leave out more.
func (f *findReader) name(w Word) {
	if !w.Dynamic && len(f.names) < maxNested && !strings.ContainsAny(w.Text, "*?[\\/") {
		f.names = append(f.names, w.Text)
	}
	if f.ends != nil {
		return
	}
	f.extension = strings.HasPrefix(w.Text, "*.")
	for _, end := range nameEnds(w) {
		if end == PartNames || !strings.Contains(end, ".") || strings.HasSuffix(end, ".git") {
			end = "" // as good as any
		}
		f.ends = append(f.ends, end)
	}
}

// read returns the ends of the names of what commands read that are given what is
// found. Below a directory that is found there are others.
func (f *findReader) read() []string {
	if !f.files && !f.extension {
		return nil
	}
	return f.ends
}

// together returns the names to which an action applies: those of all actions of
// one kind, unless one of them applies to all.
func together(before, ends []string) []string {
	if len(ends) == 0 {
		return []string{""}
	}
	if slices.Contains(before, ends[0]) {
		return before // all ends are those of the same names
	}
	return append(before, ends...)
}

func (f *findReader) add(w Word, kind Kind) {
	f.operands = append(f.operands, Operand{Word: w, Kind: kind, Tree: true})
}

// word reads words[i] and returns how many words after it belong to it.
func (f *findReader) word(words []Word, i int) int {
	w := words[i]
	takes, known := findTests[w.Text]
	flag := known || strings.HasPrefix(w.Text, "-")
	switch {
	case w.Many || w.Dynamic && (w.Text == "" || flag):
		f.safe = false
		f.c.unknown(w, "find")
		f.add(w, Read)
	case known:
		f.test(words, i)
		return f.takes(words, i, takes)
	case flag || f.inExpression:
		return f.action(words, i)
	default:
		f.rooted = true
		f.add(w, Read)
	}
	return 0
}

// takes reads the values of words[i], and returns how many there are.
func (f *findReader) takes(words []Word, i, n int) int {
	if n > 0 && i+1 < len(words) && words[i+1].Many {
		f.safe = false
		f.c.unknown(words[i+1], "find")
		f.add(words[i+1], Read)
	}
	return n
}

// test reads a test that find only evaluates.
func (f *findReader) test(words []Word, i int) {
	name, value := words[i].Text, Word{Dynamic: true}
	if i+1 < len(words) {
		value = words[i+1]
	}
	switch name {
	case "-type":
		f.files = f.files || value == Word{Text: "f"}
	case "-name", "-iname":
		f.name(value)
		f.again = f.again || name == "-name" && !value.Dynamic && MadeAgain(value.Text)
	case "-empty":
		f.empty = true
	case "-not", "!", "(", ")", "-o", "-or", ",":
		f.either = true
	}
	if name != "-L" && name != "-H" && name != "-P" {
		f.inExpression = true
	}
	if name == "-L" || name == "-follow" {
		f.add(Word{Dynamic: true}, Read)
	}
}

// action reads a part of the expression that does something, or is not known.
func (f *findReader) action(words []Word, i int) int {
	f.inExpression = true
	switch name := words[i].Text; {
	case name == "-exec" || name == "-execdir" || name == "-ok" || name == "-okdir":
		f.runs, f.ran = true, together(f.ran, f.read())
		return f.command(words[i:], i+1)
	case name == "-delete":
		f.delete()
	case strings.HasPrefix(name, "-newer") || name == "-samefile" || name == "-anewer" || name == "-cnewer":
		return f.takes(words, i, 1)
	default:
		f.safe = false // -fprint, -fls, -files0-from and whatever comes later
		if strings.HasPrefix(name, "-f") && i+1 < len(words) {
			f.operands = append(f.operands, Operand{Word: words[i+1], Kind: Write})
			return f.takes(words, i, 1)
		}
	}
	return 0
}

// delete takes note that what was found so far is deleted.
func (f *findReader) delete() {
	ends := slices.Clone(f.ends)
	if f.empty && len(ends) == 0 {
		ends = []string{""}
	}
	for i, end := range ends {
		if end == "" {
			ends[i] = PartSome
		}
	}
	f.deletes, f.deleted = true, together(f.deleted, ends)
}

// command reads the command after -exec, the word of argv at an index. It returns how many
// words belong to it.
func (f *findReader) command(words []Word, at int) int {
	end := 1
	for end < len(words) && words[end].Text != ";" && (words[end].Text != "+" || words[end-1].Text != "{}") {
		if words[end].mayBe(";") || words[end].Many {
			f.c.unknown(words[end], "find")
		}
		end++
	}
	run := Run{Argv: words[1:end], At: at + 1, Replaces: "{}", Found: Word{Fresh: f.again}}
	if strings.HasSuffix(words[0].Text, "dir") {
		run.Dir = Word{Dynamic: true}
	}
	if len(run.Argv) > 0 {
		if removesFiles(run.Argv) {
			f.delete()
		}
		f.c.Runs = append(f.c.Runs, run)
	}
	return end
}

// found says what a command is given: a name in the directory where it runs, or one below
// the root, if there is one.
func (f *findReader) found(run *Run, roots []Operand) {
	switch run.Found = (Word{Dynamic: true, Fresh: run.Found.Fresh && !f.either}); {
	case run.Dir.Dynamic:
		run.Found.Text = "./"
	case len(roots) == 1 && f.rooted && !roots[0].Word.Dynamic:
		run.Found.Text = roots[0].Word.Text
	}
}

// MadeAgain reports whether a directory of a name is one that tools make again when it is
// gone.
func MadeAgain(name string) bool {
	return IsField("node_modules __pycache__ .pytest_cache .mypy_cache .ruff_cache .tox .nox .gradle .next .nuxt .turbo .parcel-cache .terraform .eggs htmlcov", name)
}

// unknown notes a word of which it is not known whether it belongs to the structure
// of a command.
func (c *Command) unknown(w Word, program string) {
	if c.Opaque == "" {
		c.Opaque, c.Anything = "a word of "+program+" that is known only when it runs may be a part of its structure", true
	}
}

// removesFiles reports whether a command removes the files that it is given, and no
// directories: for all files of a tree that comes to the same.
func removesFiles(argv []Word) bool {
	return IsField("rm unlink", baseName(argv[0].Text)) && !slices.ContainsFunc(argv[1:], func(w Word) bool {
		return strings.HasPrefix(w.Text, "--r") || strings.HasPrefix(w.Text, "-") && strings.ContainsAny(w.Text, "rR") && !strings.HasPrefix(w.Text, "--")
	})
}
