package programs

import (
	"slices"
	"strings"
)

// describe sets the effects of a command on its operands, and the level that covers it.
func (r *reader) describe(c *Command, s *spec, own []Word) {
	if !r.trusted {
		s = nil
	}
	switch {
	case s == nil || !r.specified:
		c.Operands = hosts(r.argv)
	case special(c, s, r, own):
	default:
		r.byParser(c, s, own)
		if s.has("module") {
			r.module(c, s)
		}
	}
	root := s.root()
	if c.Prints == nil {
		c.Prints = printed(c.Operands)
	}
	if c.Prints == nil && root.has("lists") {
		c.Prints = []Operand{{Word: Word{Text: "."}, Kind: Read, Tree: true}}
	}
	if s != nil {
		c.Operands = append(c.Operands, r.obeyed(c, s, own)...)
	}
	if !c.Known {
		c.Suspects = suspects(r.argv)
	} else {
		c.Suspects = slices.DeleteFunc(c.Suspects, mayNameInput)
	}
	if i := slices.IndexFunc(c.Operands, func(o Operand) bool { return o.Role == "script" && o.Kind == Read }); i >= 0 && root.has("shell") {
		c.Suspects = slices.DeleteFunc(c.Suspects, func(w Word) bool { return w == c.Operands[i].Word })
	}
	if root.coversNone(c) {
		c.Covers = CoversNone
	}
}

// obeyed returns what a command reads besides its own words: files and hosts of options before the subcommand, and
// files that determine what it runs.
func (r *reader) obeyed(c *Command, s *spec, own []Word) (out []Operand) {
	root := s.root()
	if s != root || c.HasSub {
		out = c.globalFiles(root)
	}
	if root.has("git") {
		out = append(out, gitSettings(r.words, own)...)
	}
	for file := range strings.FieldsSeq(root.obeys) {
		out = append(out, Operand{Word: Word{Text: file}, Role: "script"})
	}
	return out
}

// module adds the files that a Python module may read.
func (r *reader) module(c *Command, s *spec) {
	for _, run := range c.Runs {
		if inner := Parse(run.Argv); !inner.Known {
			f := parser{describe: true, roles: []string{"read*"}, spec: s}
			c.Operands = append(c.Operands, f.parse(inner.Suspects).operands...)
		}
	}
}

// bare reports whether the specification only names a program.
func (s *spec) bare() bool {
	return len(s.forms)+len(s.subs)+len(s.unsafe)+len(s.globals) == 0 && s.special == ""
}

// coversNone reports whether no level can cover a command: it has no specification, runs another command, is opaque,
// or has an option before the subcommand that is not known to be harmless.
func (s *spec) coversNone(c *Command) bool {
	runs := s != nil && len(c.Runs) > 0 && s.special == ""
	if s == nil || runs || c.Opaque != "" {
		return true
	}
	if s.has("git") {
		return !harmlessGlobals(s, c)
	}
	return len(c.Sub) > 0 && slices.ContainsFunc(c.Flags[:c.before], func(f Flag) bool {
		return (f.HasValue || f.spec == nil) && !IsField(s.harmless, f.Name)
	})
}

func (r *reader) byParser(c *Command, s *spec, own []Word) {
	if s.parent != nil && (s.forms == nil || s.has("elsewhere")) {
		r.withoutParser(c, s, own)
		return
	}
	ends := s.stopsAt() < 0 || s.has("shell")
	if ends && s.parent == nil && len(c.Sub)+len(c.Runs) == 0 {
		own = r.words
	}
	switch best, as := c.bestParser(s.forms, own); {
	case best == nil:
		c.Operands = append(c.Operands, hosts(r.argv)...)
	case best.required: // such as "npm --version"
		c.Known, c.Suspects = true, suspects(r.argv)
		c.Operands = slices.Concat(c.Operands, hosts(r.argv), best.parse(c.Suspects).operands)
	default:
		c.Known, c.Suspects = true, as.suspects
		c.Operands = append(c.Operands, as.operands...)
	}
}

// bestParser returns the parser that describes the words, and its result. It sets the level that covers them.
func (c *Command) bestParser(forms []*parser, words []Word) (best *parser, as parsed) {
	for _, f := range forms {
		p := f.parse(words)
		stricter := c.Covers == CoversNone || f.level < c.Covers
		if stricter && p.covered && !f.describe {
			c.Covers = f.level
		}
		applies := p.covered || !f.required
		if best == nil || applies && f.betterThan(best, c.Covers) {
			best, as = f, p
		}
	}
	return best, as
}

// betterThan reports whether to use f instead of other. A parser of level CoversWrite wins; then, while no parser
// covers the words, one that requires no flag; then the one with more operand roles.
func (f *parser) betterThan(other *parser, covers Level) bool {
	free := other.required && !f.required
	if f.level == CoversWrite || free && covers == CoversNone {
		return true
	}
	return other.level != CoversWrite && len(f.roles) > len(other.roles)
}

// withoutParser describes a subcommand whose specification has only flags.
func (r *reader) withoutParser(c *Command, s *spec, own []Word) {
	if !s.has("notes") {
		c.Operands = hosts(r.argv)
	}
	if c.Known = len(s.root().forms) > 0; !c.Known {
		return
	}
	if len(own) > 0 && IsField(s.root().deeper, s.name) && isSubcommand(own[0]) {
		own = own[1:]
	}
	for depth := s.root().depth - len(c.Sub); depth > 0 && len(own) > 0 && isSubcommand(own[0]); depth-- {
		own = own[1:]
	}
	c.Suspects = suspects(r.argv)
	own = slices.DeleteFunc(slices.Clone(own), func(w Word) bool { return isURL(w.Text) })
	f := parser{describe: true, roles: []string{"read*"}, spec: s}
	c.Operands = append(c.Operands, f.parse(own).operands...)
}

func printed(operands []Operand) (out []Operand) {
	for _, o := range operands {
		if o.Kind != Read || !o.Tree && o.Part != PartNames {
			continue
		}
		o.Tree = true
		if o.Part == PartNames {
			o.Part = ""
		}
		out = append(out, o)
	}
	return out
}

// suspects returns the words that may be paths.
func suspects(argv []Word) []Word {
	if len(argv) == 0 {
		return nil
	}
	s, _ := find(argv[:1])
	first, count := s.named(argv)
	out, beginnings := make([]Word, 0, len(argv)), s.flagBeginnings()
	for i := 1; i < len(argv); i++ {
		w := argv[i]
		switch {
		case i >= first && i < first+count || isURL(w.Text):
			continue
		case s.has("modules") && w.Text == "-m" && i+1 < len(argv):
			i++
			continue
		case s.has("packages") && isOperand(w.Text) && !w.Dynamic:
			return append(out, suspects(Unversioned(argv[i:]))...)
		}
		out = append(out, w)
		for _, f := range beginnings {
			if value, ok := strings.CutPrefix(w.Text, f); ok && value != "" {
				out = append(out, Word{Text: value, Dynamic: w.Dynamic}) // -MFfile
			}
		}
	}
	return out
}

func (s *spec) flagBeginnings() (out []string) {
	if s == nil {
		return nil
	}
	for _, f := range s.root().unsafe {
		if begin, ok := strings.CutSuffix(f, "*"); ok && len(begin) > 2 && !strings.Contains(begin, "*") {
			out = append(out, begin)
		}
	}
	return out
}

// named returns the position and number of the words that name what a program does.
func (s *spec) named(argv []Word) (first, count int) {
	if s == nil || s.has("packages") {
		return 0, 0
	}
	depth := s.depth
	if depth == 0 {
		if len(s.globals) == 0 {
			return 0, 0
		}
		depth = 1
	}
	r := reader{argv: argv, words: argv[1:]}
	start := 0
	if len(s.globals) > 0 {
		start = r.subcommandIndexes(s)[0]
	} else if start = slices.IndexFunc(argv[1:], func(w Word) bool { return w.Dynamic || !strings.HasPrefix(w.Text, "-") }); start < 0 {
		start = len(argv) - 1
	} else if start > 0 && !strings.Contains(argv[start].Text, "=") {
		return 0, 0
	}
	rest := argv[1+start:]
	for i, w := range rest {
		if i == 1 && IsField(s.deeper, rest[0].Text) {
			depth++
		}
		if i >= depth || !isSubcommand(w) {
			break
		}
		count++
	}
	return 1 + start, count
}

func isSubcommand(w Word) bool {
	if w.Dynamic || w.Text == "" || w.Text[0] == '-' {
		return false
	}
	for i := range len(w.Text) {
		if !isLetterOrDigit(w.Text[i]) && strings.IndexByte("-_:", w.Text[i]) < 0 {
			return false
		}
	}
	return true
}

// Unversioned turns prisma@latest into prisma.
func Unversioned(words []Word) []Word {
	if len(words) == 0 {
		return words
	}
	name := words[0].Text
	at := strings.LastIndexByte(name, '@')
	if at <= 0 || strings.Contains(name[at:], "/") {
		return words
	}
	words = slices.Clone(words)
	words[0].Text = name[:at]
	return words
}

// MayBePaths returns the parts of a word that may be paths: file/x and /x of -rfile/x.
func MayBePaths(text string) (paths [2]string) {
	if _, value, ok := strings.Cut(text, "="); ok {
		return [2]string{value, value[strings.LastIndexAny(value, ":,=")+1:]}
	}
	if before, _, ok := strings.Cut(text, ":"); ok {
		return [2]string{text, before}
	}
	i := strings.IndexByte(text, '/')
	switch {
	case len(text) > 2 && i <= 0 && text[0] == '-':
		return [2]string{text[2:]}
	case i <= 0 || text[0] != '-':
		return [2]string{text}
	case i <= 2 || text[1] == '-':
		return [2]string{text[i:]}
	}
	return [2]string{text[i:], text[2:]}
}
