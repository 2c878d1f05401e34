package programs

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

const systemDirs = "/bin/ /usr/bin/ /usr/local/bin/ /sbin/ /usr/sbin/ /usr/local/sbin/ /opt/homebrew/bin/ /usr/lib/git-core/ /usr/libexec/git-core/"

// System returns the base name of a program in PATH or in a system directory.
func System(program string) (name string, ok bool) {
	i := strings.LastIndexByte(program, '/') + 1
	if i > 0 && !IsField(systemDirs, program[:i]) {
		return "", false
	}
	return program[i:], true
}

func baseName(program string) string { return program[strings.LastIndexByte(program, '/')+1:] }

// Parse parses a command and marks what is unknown.
func Parse(argv []Word) Command {
	return parse(argv, 0, &memory{})
}

// Spell parses only names, flags, operands and started commands.
func Spell(argv []Word) Command {
	return new(Speller).Spell(argv)
}

// Speller reuses its memory: a Command is valid until the next call. It is not safe for concurrent use.
type Speller struct{ memory memory }

type memory struct {
	flags []Flag
	words []Word
}

// Spell is like the function Spell.
func (s *Speller) Spell(argv []Word) Command {
	return parse(argv, namesOnly, &s.memory)
}

// namesOnly, as a depth of nesting, parses what Spell does.
const namesOnly = -1

// maxNested limits nested commands, maxStarted the words of each.
const (
	maxNested  = 4
	maxStarted = 256
)

const maxReadings = 64 // positions that a subcommand may have

// parse parses a command started by as many others as nested says. If its subcommand may be at several positions, the
// readings are linked by Or; marks that any of them has are those of the first.
func parse(argv []Word, nested int, m *memory) Command {
	if len(argv) == 0 {
		return Command{Opaque: "the program is known only when it runs", Anything: true}
	}
	_, trusted := System(argv[0].Text)
	s, words := find(argv)
	named := !argv[0].Dynamic && argv[0].Text != ""
	r := reader{argv: argv, words: words, nested: nested, trusted: trusted && named}
	if s == nil {
		s = unknown()
	} else {
		r.specified = true
	}
	starts := r.subcommandIndexes(s)
	c := r.readingAt(s, starts[0], m)
	last := &c
	for _, start := range starts[1:] {
		next := r.readingAt(s, start, &memory{})
		last.Or, last = &next, &next
		c.Leaves, c.Network, c.Loses = c.Leaves || next.Leaves, c.Network || next.Network, cmp.Or(c.Loses, next.Loses)
	}
	c.Anything = c.Anything || !named
	return c
}

var unknown = sync.OnceValue(func() *spec { return newSpec("", nil) })

// find returns the specification of a program, with aliases expanded.
func find(argv []Word) (*spec, []Word) {
	words := argv[1:]
	name := baseName(argv[0].Text)
	if argv[0].Dynamic {
		return nil, words
	}
	s := program(name)
	if s == nil {
		if sub, ok := strings.CutPrefix(name, "git-"); ok {
			return program("git"), prepend([]string{sub}, words)
		}
		s = program(strings.TrimSuffix(strings.TrimRight(name, "0123456789."), "-"))
		if !s.has("script") && !s.has("versions") {
			return nil, words
		}
	}
	for s.as != nil && program(s.as[0]) != nil {
		words = prepend(s.as[1:], words)
		s = program(s.as[0])
	}
	return s, words
}

// reader reads the words of one command.
type reader struct {
	argv, words []Word // words are those after the program
	nested      int
	trusted     bool // the program is in PATH or a system directory
	specified   bool // the program has a specification
}

func (s *spec) hasSubcommands() bool { return len(s.globals)+len(s.subs)+len(s.names) > 0 }

// subcommandIndexes returns every index that the subcommand may have, since an unknown option may take a value.
func (r *reader) subcommandIndexes(s *spec) (out []int) {
	if !s.hasSubcommands() {
		return []int{0}
	}
	for i := 0; i < len(r.words) && len(out) < maxReadings; i++ {
		w := r.words[i]
		attached := w.Dynamic && !w.Many && s.attached(w.Text)
		switch toolchain := s.has("toolchain") && strings.HasPrefix(w.Text, "+"); {
		case attached || toolchain:
			continue
		case w.Dynamic || !w.flagLike():
			return append(out, i)
		}
		values, unsure := s.globalValues(r.words[i:])
		if unsure {
			out = append(out, i+1)
		}
		i += values
	}
	return append(out, len(r.words))
}

// globalValues returns the known number of values that follow the flag words[0]. unsure means that the next word may
// also be the subcommand.
func (s *spec) globalValues(words []Word) (n int, unsure bool) {
	name, _, attached := strings.Cut(words[0].Text, "=")
	f := s.globals[name]
	if f == nil && s.has("go") {
		f = s.globals["-"+strings.TrimLeft(name, "-")]
	}
	next := len(words) > 1 && !strings.HasPrefix(words[1].Text, "-")
	switch {
	case attached:
		return 0, false
	case f.takesWord():
		return 1, len(words) > 1 && words[1].Many
	case next && isTruth(words[1]):
		return 1, false
	case !next || f != nil || s.attached(name):
		return 0, false
	}
	return 1, true
}

func isTruth(w Word) bool { return !w.Dynamic && (w.Text == "true" || w.Text == "false") }

// takesWord reports whether the next word is a value of the flag, which may be nil.
func (f *flag) takesWord() bool { return f != nil && f.values != "" && !f.only }

// attached reports whether a word is a short global flag with a value in the same word, such as -C of git -Csrc.
func (s *spec) attached(text string) bool {
	if len(text) < 2 || text[1] == '-' || s.has("go") {
		return false
	}
	f := s.globals[text[:2]]
	return f != nil && (f.values != "" || f.only)
}

// readingAt parses the command as if its subcommand were at index start of the words. It uses the memory of m.
func (r *reader) readingAt(s *spec, start int, m *memory) Command {
	g := getopt{reader: *r, spec: s, stop: -1}
	c := &g.c
	c.Flags, c.Words = m.flags[:0], m.words[:0]
	g.program()
	g.read(r.words[:start], len(r.argv)-len(r.words))
	c.before = len(c.Flags)
	c.Words, g.operands = c.Words[:0], 0
	if slices.ContainsFunc(r.words[:start], func(w Word) bool { return w.Many }) {
		c.Opaque, c.Anything = "the subcommand of "+s.name+" is known only when it runs", true
	}
	rest := r.words[start:]
	if s.hasSubcommands() && s.stopsAt() < 0 {
		s, rest = g.subcommand(s, rest)
	}
	named := len(rest) > 0 && !rest[0].Dynamic && !rest[0].flagLike()
	if named && s.parent == nil && s.has("git") {
		c.Alias = len(r.argv) - len(rest)
	}
	opaque := c.Opaque
	g.spec, g.stop = s, s.stopsAt()
	used := g.read(rest, len(r.argv)-len(rest))
	own, started := rest[:used], rest[used:]
	if g.runs(own, started); s.has("elsewhere") {
		if own = rest; c.Opaque != opaque {
			c.Opaque, c.Runs = opaque, nil
		}
	}
	m.flags, m.words = c.Flags, c.Words
	r.git(c, s)
	c.Carries, c.spec, c.argv = r.carries(s), s, r.argv
	if r.nested == namesOnly {
		if s.root().special == "find" {
			c.find(r.words)
		}
	} else {
		r.describe(c, s, slices.Concat(g.between, own))
		r.marks(c, s)
	}
	if root := s.root(); root.kinds != nil && len(c.Words) > len(c.Sub) {
		root.objects(c)
	}
	return g.c
}

// program sets the fields that depend on the first word.
func (g *getopt) program() {
	c, s, first := &g.c, g.spec, g.argv[0]
	c.Base, c.HasSub, c.OneDash = s.name, s.hasSubcommands() && s.stopsAt() < 0 && !s.has("targets"), s.has("go")
	if !g.specified {
		c.Base = baseName(first.Text)
	}
	switch {
	case first.Dynamic || first.Text == "":
		c.Opaque = "the program is known only when it runs"
	case g.trusted:
		c.Name = c.Base
	}
}

// subcommand resolves subcommands that are aliases of programs, such as npm exec of npx.
func (g *getopt) subcommand(s *spec, words []Word) (*spec, []Word) {
	for s, words = g.descend(s, words); s.as != nil; s, words = g.descend(s, words) {
		path := s.as[1:]
		s = program(s.as[0])
		if g.c.Base = s.name; g.c.Name != "" {
			g.c.Name = s.name
		}
		g.c.HasSub = s.stopsAt() < 0
		if g.c.Sub, g.c.Words = nil, g.c.Words[:0]; len(path) == 0 {
			break
		}
		words = prepend(path, words)
	}
	return s, words
}

// descend resolves as many words as name a subcommand, up to one that is an alias of a program.
func (g *getopt) descend(s *spec, words []Word) (*spec, []Word) {
	if len(words) == 0 {
		return s, words
	}
	if words[0].Dynamic {
		if !s.has("targets") {
			g.c.Opaque, g.c.Anything = "the subcommand of "+s.name+" is known only when it runs", true
		}
		return s, words
	}
	for words = s.canonical(g.joined(s, words)); len(words) > 0 && !words[0].Dynamic; words = g.joined(s, words) {
		next := s.subs[words[0].Text]
		if next == nil {
			break
		}
		g.c.Sub = append(g.c.Sub, words[0].Text)
		g.c.Words = append(g.c.Words, words[0])
		if s, words = next, words[1:]; s.as != nil {
			return s, words
		}
	}
	if len(words) > 0 && words[0].Dynamic && len(s.subs) > 0 {
		g.c.Opaque, g.c.Anything = "the subcommand of "+s.root().name+" is known only when it runs", true
	}
	if s.parent == nil && len(words) > 0 && !words[0].Dynamic {
		g.c.Sub = []string{words[0].Text}
	}
	return s, words
}

// joined parses and removes options between words of a subcommand, as in docker compose -f x down.
func (g *getopt) joined(s *spec, words []Word) []Word {
	if len(words) < 3 || words[0].Dynamic || !strings.HasPrefix(words[1].Text, "-") {
		return words
	}
	first, next := words[0].Text, s.subs[words[0].Text]
	in := next
	if in == nil {
		in = s
	}
	second := func(w Word) bool {
		nested := next != nil && next.subs[w.Text] != nil
		return !w.Dynamic && (nested || s.names[first+" "+w.Text] != nil)
	}
	i := 1 + in.flagsBefore(words[1:], second)
	if i >= len(words) || !second(words[i]) || slices.ContainsFunc(words[:i], func(w Word) bool { return w.Many }) {
		return words
	}
	spec, stop, taken := g.spec, g.stop, g.c.Words
	g.spec, g.stop = in, -1
	g.read(words[1:i], len(g.argv)-len(words)+1)
	g.spec, g.stop, g.operands, g.c.Words, g.c.wordAt = spec, stop, 0, taken, nil
	g.between = append(g.between, words[1:i]...)
	return append([]Word{words[0]}, words[i:]...)
}

// flagsBefore returns the number of leading flags and values. An unknown flag has one value, unless the next word is
// a subcommand.
func (s *spec) flagsBefore(words []Word, isSubcommand func(Word) bool) (n int) {
	for ; n < len(words) && strings.HasPrefix(words[n].Text, "-"); n++ {
		last := n+1 == len(words) || strings.HasPrefix(words[n+1].Text, "-")
		if last || words[n].Dynamic {
			continue
		}
		if s.flag(words[n].Text).takesWord() || !strings.Contains(words[n].Text, "=") && !isSubcommand(words[n+1]) {
			n++
		}
	}
	return n
}
