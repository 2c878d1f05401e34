package programs

import (
	"cmp"
	"slices"
	"strings"
)

// special parses commands whose words are a language of their own.
func special(c *Command, s *spec, r *reader, own []Word) bool {
	switch attribute := s.root().special; attribute {
	case "find":
		c.find(r.words)
	case "sed":
		c.sed(own)
	case "awk":
		c.awk(own)
	case "tar":
		c.tar(own, s.harmless)
	case "test":
		c.test(own)
		r.byParser(c, s, own)
	case "ln":
		if len(c.Words) == 1 && !c.Words[0].Many && !c.hasFlag("-t") {
			here := Word{Text: "."} // a link to one target, in the working directory
			r.words, own = append(slices.Clip(r.words), here), append(slices.Clip(own), here)
		}
		r.byParser(c, s, own)
		c.links()
	case "mktemp":
		c.temporary()
	case "git":
		return c.gitRemote(s, own) || r.gitIndex(c, s, own)
	case "copies":
		c.Known = true
		c.Operands = append(c.copies(), c.valueFiles()...)
	default:
		return false
	}
	return true
}

// test marks the command as opaque if a word may be an operator that evaluates its operand.
func (c *Command) test(words []Word) {
	if n := len(words); n > 0 && words[n-1] == (Word{Text: "]"}) {
		words = words[:n-1]
	}
	padded := slices.Concat([]Word{{}}, words, []Word{{}})
	for i, w := range words {
		before, after := padded[i], padded[i+2]
		compared := before.isComparison() || after.isComparison()
		unary := !before.Dynamic && len(before.Text) == 2 && before.Text[0] == '-'
		operand := compared || unary || len(words) == 1
		if w.Many || w.Dynamic && !operand {
			c.Opaque, c.Anything = unknownPart("test"), true
		}
	}
}

// isComparison reports whether the word is a binary operator of test.
func (w Word) isComparison() bool {
	return !w.Dynamic && IsField("= == != < > -nt -ot -ef -eq -ne -lt -le -gt -ge", w.Text)
}

// temporary handles mktemp, which uses /tmp without a template or with -t. With an unknown flag, any word may be the
// template.
func (c *Command) temporary() {
	dir, template := Word{}, Word{Text: "tmp.XXXXXXXXXX"}
	below := len(c.Words) == 0
	covered := len(c.Words) < 2 && !slices.ContainsFunc(c.Words, func(w Word) bool { return w.Many })
	for _, f := range c.Flags {
		switch {
		case f.Dynamic || f.spec == nil:
			return
		case IsField("-p --tmpdir", f.Name) && f.HasValue:
			dir = f.Value
			covered = covered && !dir.Dynamic
		}
		covered = covered && !f.Value.Many
		below = below || IsField("-t -p --tmpdir", f.Name)
	}
	c.Known = true
	if len(c.Words) > 0 {
		template = c.Words[len(c.Words)-1]
	}
	if below {
		dir.Text = cmp.Or(dir.Text, "/tmp")
	}
	if dir.Text != "" {
		template = Word{Text: dir.Text + "/" + template.Text, Dynamic: template.Dynamic || dir.Dynamic}
	}
	c.Operands = []Operand{{Word: template, Kind: Write}}
	if covered {
		c.Covers = CoversWrite
	}
}

func (c *Command) awk(words []Word) {
	c.Known = true
	safe, program := true, false
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case w.mayBeFlags():
			safe = false
			c.Operands = append(c.Operands, Operand{Word: w, Kind: Read})
		case program:
			// name=value is judged as a path as well.
			c.Operands = append(c.Operands, Operand{Word: w, Kind: Read})
		case w.Text == "-F" || w.Text == "-v":
			i++
			safe = safe && i < len(words) && !words[i].Dynamic
			if i < len(words) && words[i].Many {
				c.Operands = append(c.Operands, Operand{Word: Word{Dynamic: true}, Kind: Read})
			}
		case strings.HasPrefix(w.Text, "-F"):
		case strings.HasPrefix(w.Text, "-"):
			safe = false
		default:
			program = true
			safe = safe && safeAwkProgram(w)
		}
	}
	if safe && program {
		c.Covers = CoversRead
	}
}

// safeAwkProgram reports whether a program neither runs commands nor names files. Text in quotes counts as code.
func safeAwkProgram(w Word) bool {
	if w.Dynamic {
		return false
	}
	for _, bad := range []string{"system", "getline", "ENVIRON", "PROCINFO", "ARGV", "FILENAME=", "@", "`"} {
		if strings.Contains(w.Text, bad) {
			return false
		}
	}
	code := strings.NewReplacer("||", "", ">=", "").Replace(w.Text)
	if strings.Contains(code, "|") {
		return false
	}
	// After print, > writes a file.
	printed := strings.Index(code, "print")
	return printed < 0 || !strings.Contains(code[printed:], ">")
}

// links makes targets of symbolic links relative to these. They are certainly symbolic if all flags are
// known, and the first word, after which any program reads flags, has -s.
func (c *Command) links() {
	operands := c.Operands
	symbolic := slices.ContainsFunc(c.Flags, func(f Flag) bool {
		begins := f.Dynamic && len(f.Name) > 2 && strings.HasPrefix("--symbolic", f.Name)
		return begins || f.Name == "-s"
	})
	c.markTargets()
	if !symbolic || c.hasFlag("-r") {
		return
	}
	links := linksMade(operands)
	directories := outermost(links)
	c.Operands = make([]Operand, 0, 2*len(operands))
	for _, o := range operands {
		if links[o.Word] || strings.HasPrefix(o.Word.Text, "/") {
			c.Operands = append(c.Operands, o)
			continue
		}
		for _, target := range fromLinks(o.Word, directories) {
			o.Word = target
			c.Operands = append(c.Operands, o)
		}
	}
}

func (c *Command) markTargets() {
	first := slices.ContainsFunc(c.Flags, func(f Flag) bool { return f.Name == "-s" && f.At == 1 })
	if !first || c.Covers != CoversWrite {
		return
	}
	for i, o := range c.Operands {
		if o.Kind == Write && o.Tree {
			c.Operands[i].Role = Target
		}
	}
}

func linksMade(operands []Operand) map[Word]bool {
	links := make(map[Word]bool)
	for _, o := range operands {
		if o.Kind == Write {
			links[o.Word] = true
		}
	}
	for _, o := range operands {
		if o.Kind == Read {
			delete(links, o.Word)
		}
	}
	return links
}

// outermost returns sorted links, without those inside other links.
func outermost(links map[Word]bool) (out []Word) {
	for l := range links {
		dir, _, ok := cutLast(l.Text)
		if !ok || !links[Word{Text: dir, Dynamic: false}] && !links[Word{Text: dir, Dynamic: true}] {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b Word) int { return strings.Compare(a.Text, b.Text) })
	return out
}

const maxFolders = 8

// fromLinks returns targets relative to each link's directory, and to the link as a directory.
func fromLinks(target Word, links []Word) []Word {
	var out []Word
	add := func(w Word) {
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	if len(links) > maxFolders {
		return []Word{{Dynamic: true}}
	}
	for _, l := range links {
		if l.Dynamic {
			add(Word{Dynamic: true})
			continue
		}
		if dir, _, ok := cutLast(l.Text); !ok {
			add(Word{Text: "./" + target.Text, Dynamic: target.Dynamic})
		} else if !strings.HasSuffix(l.Text, "/") {
			add(Word{Text: dir + "/" + target.Text, Dynamic: target.Dynamic})
		}
		add(Word{Text: strings.TrimRight(l.Text, "/") + "/" + target.Text, Dynamic: target.Dynamic})
	}
	if len(links) == 0 {
		add(target)
	}
	return out
}

func cutLast(path string) (dir, name string, ok bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", path, false
	}
	return path[:i], path[i+1:], true
}

// objects replaces kinds by their canonical names: pod/x, pods x and po x are equal.
func (s *spec) objects(c *Command) {
	at := len(c.Sub)
	w := c.Words[at]
	if w.Dynamic {
		return
	}
	rest := c.Words[at+1:]
	for i, name := range strings.Split(strings.ToLower(w.Text), ",") {
		if i > maxReadings {
			return
		}
		words := append([]Word{}, c.Words[:at]...)
		kind, object, split := strings.Cut(name, "/")
		kind, _, _ = strings.Cut(kind, ".") // deployments.apps
		if first := s.kinds[kind]; first != "" {
			kind = first
		}
		words = append(words, Word{Text: kind})
		if split {
			words = append(words, Word{Text: object})
		}
		if words = append(words, rest...); i == 0 {
			c.Words = words
			continue
		}
		other := *c
		other.Words = words
		c.Or = &other
	}
}
