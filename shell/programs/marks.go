package programs

import (
	"slices"
	"strings"
)

// marks sets what a command loses, sends and runs, and which flags must be named.
func (r *reader) marks(c *Command, s *spec) {
	c.losesOrSends(s)
	other := func(f Flag) bool { return f.Dynamic || f.Name != "--" && !IsField(s.fetches, f.Name) }
	fetches := s.fetches != "" && !slices.ContainsFunc(c.Flags, other)
	c.Fetches = fetches || s.has("fetch")
	r.unsafe(c, s)
	r.unnamed(c, s)
	c.Code = r.carriesCode(c, s)
	c.Feeds = r.isFed(c, s)
	for _, run := range c.Runs {
		if len(run.Argv) == 0 || run.Language != "" || run.Elsewhere {
			continue
		}
		given := run.Adds || run.Replaces != ""
		if given && c.Loses == "" && removesFiles(run.Argv) {
			c.Loses = "removes all files that it is given"
		}
		if r.nested >= maxNested || len(run.Argv) > maxStarted {
			c.Opaque = "it starts a command that is too long to follow"
			return
		}
		r.started(c, run)
	}
}

// losesOrSends sets what the command itself destroys and sends.
func (c *Command) losesOrSends(s *spec) {
	for at := s; at != nil; at = at.parent {
		if m := holding(at.loses, c); m != nil && c.Loses == "" {
			c.Loses = m.text
		}
		if m := holding(at.moves, c); m != nil && c.Loses == "" {
			c.Loses, c.Moves = m.text, true
		}
		c.Leaves = c.Leaves || holding(at.leaves, c) != nil
		c.Network = c.Network || holding(at.network, c) != nil
	}
	if stays(c.Operands) {
		c.Leaves, c.Network = false, false
	}
	c.Network = c.Network || c.Leaves
}

func (r *reader) started(c *Command, run Run) {
	inner := parse(run.Argv, r.nested+1, &memory{})
	c.Leaves, c.Network = c.Leaves || inner.Leaves, c.Network || inner.Network
	c.Feeds = c.Feeds || inner.Feeds
	shift := len(r.argv) - len(run.Argv)
	for _, at := range inner.Unsafe {
		c.Unsafe = append(c.Unsafe, at+shift)
	}
}

// StartsShell reports whether the program may run a shell, which may run the program's input.
func (c *Command) StartsShell(argv []Word) bool {
	for inner, doubtful := range c.MayRun(argv) {
		if spec := Find(inner[0].Text).spec; !doubtful && spec != nil && spec.has("shell") {
			return true
		}
	}
	return false
}

func holding(marks []mark, c *Command) *mark {
	for i := range marks {
		if marks[i].holds(c) {
			return &marks[i]
		}
	}
	return nil
}

// holds reports whether a mark applies. Unknown parts may match.
func (m *mark) holds(c *Command) bool {
	if slices.ContainsFunc(m.unless, c.begins) {
		return false
	}
	for _, name := range m.without {
		name, value, valued := strings.Cut(name, "=")
		has := c.hasFlag(name) && !c.undone(name)
		if valued {
			has = c.hasOnly(name, value)
		}
		if has {
			return false
		}
	}
	operands := c.Words[min(len(c.Sub), len(c.Words)):]
	if m.least > len(operands) && !slices.ContainsFunc(operands, func(w Word) bool { return w.Many }) {
		return false
	}
	if len(m.with)+len(m.args) == 0 {
		return true
	}
	for _, all := range m.with {
		if !slices.ContainsFunc(all, func(name string) bool { return !c.MayHave(name) }) {
			return true
		}
	}
	return slices.ContainsFunc(c.Words, func(w Word) bool {
		return slices.ContainsFunc(m.args, func(p string) bool { return w.mayBe(p) })
	})
}

// begins reports whether the first words of a command are certainly these, which are separated by "/". Known options
// may come between them.
func (c *Command) begins(words string) bool {
	want := strings.Split(words, "/")
	if strings.HasPrefix(words, "-") {
		return len(c.argv) > 1 && Matches(words, joined(c.argv[1:2]))
	}
	if len(c.Words) < len(want) || !Matches(strings.Join(want, " "), joined(c.Words[:len(want)])) {
		return false
	}
	last := len(c.argv) - 1
	for last > 0 && c.argv[last] != c.Words[len(want)-1] {
		last--
	}
	return !slices.ContainsFunc(c.Flags, func(f Flag) bool { return f.At < last && f.spec == nil })
}

func (c *Command) hasOnly(name, value string) bool {
	found := false
	for _, f := range c.Flags {
		if !(Flag{Name: name}).MayBe(f) {
			continue
		}
		if f.Dynamic || f.Name != name || f.Value != (Word{Text: value}) {
			return false
		}
		found = true
	}
	return found
}

// MayHave reports whether the command may have a flag; -a=x matches its value with the pattern x.
func (c *Command) MayHave(name string) bool {
	name, value, valued := strings.Cut(name, "=")
	return slices.ContainsFunc(c.Flags, func(f Flag) bool {
		if valued && !f.Dynamic && !f.Value.mayBe(value) {
			return false
		}
		begins := f.Dynamic && strings.HasPrefix(name, f.Name)
		return begins || f.Name == name || slices.Contains(f.also, name)
	})
}

var blanks = strings.NewReplacer(" ", "_", "\t", "_", "\n", "_")

// globPattern matches a word with a glob.
const globPattern = "<glob>"

// mayBe reports whether the word may match a pattern, ignoring case.
func (w Word) mayBe(pattern string) bool {
	if pattern == globPattern {
		return strings.ContainsAny(w.Text, `*?[\`)
	}
	w.Text = blanks.Replace(strings.ToLower(w.Text))
	return w.MayMatch(pattern)
}

// MayMatch reports whether the word may match a pattern.
func (w Word) MayMatch(pattern string) bool {
	if !w.Dynamic {
		return Matches(pattern, w.Text)
	}
	before, after, star := strings.Cut(pattern, "*")
	if w.Number && strings.Trim(strings.TrimPrefix(before+after, w.Text), "-0123456789") != "" {
		return false
	}
	return strings.HasPrefix(before, w.Text) || star && strings.HasPrefix(w.Text, before)
}

// Matches reports whether s matches a pattern in which * is any text. It takes at most quadratic time.
func Matches(pattern, s string) bool {
	t, i, star, mark := 0, 0, -1, 0
	for i < len(s) {
		switch {
		case t < len(pattern) && pattern[t] == '*':
			star, mark = t, i
			t++
		case t < len(pattern) && pattern[t] == s[i]:
			t++
			i++
		case star >= 0:
			mark++
			t, i = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[t:], "*") == ""
}

func stays(operands []Operand) bool {
	some := false
	for _, o := range operands {
		if o.Kind != Net {
			continue
		}
		host := hostOf(o.Word)
		if !isLoopback(host) {
			return false
		}
		some = true
	}
	return some
}

func isLoopback(host string) bool {
	v4 := strings.HasPrefix(host, "127.") && strings.Trim(host, "0123456789.") == ""
	return v4 || host == "localhost" || host == "[::1]"
}

// hostOf returns the host of a URL or of host:port/path; "" if it is unknown.
func hostOf(w Word) string {
	_, rest, ok := strings.Cut(w.Text, "://")
	if !ok {
		rest = w.Text
	}
	host, _, whole := strings.Cut(rest, "/")
	if w.Dynamic && !whole || strings.ContainsAny(host, "@\\?#") {
		return ""
	}
	if strings.HasPrefix(host, "[") {
		return host[:strings.IndexByte(host, ']')+1]
	}
	host, _, _ = strings.Cut(host, ":")
	return strings.ToLower(host)
}

// undone reports whether a flag may be reverted: --no-dry-run.
func (c *Command) undone(name string) bool {
	return slices.ContainsFunc(c.Flags, func(f Flag) bool {
		spellings := []string{name}
		if f.spec != nil {
			spellings = f.spec.all
		}
		off := f.HasValue && f.Value.Text != "true" || slices.ContainsFunc(c.Words, func(w Word) bool { return w.Text == "false" })
		return f.Name == name && (off || slices.ContainsFunc(spellings, c.mayNegate))
	})
}

// mayNegate reports whether a flag may be the --no- form of a long one.
func (c *Command) mayNegate(long string) bool {
	return strings.HasPrefix(long, "--") && slices.ContainsFunc(c.Flags, func(no Flag) bool {
		return len(no.Name) > len("--no-") && strings.HasPrefix("--no-"+long[2:], no.Name)
	})
}

// BringsTo reports whether an operand is a known tree in which a command adds or changes files without removing any.
func (c *Command) BringsTo(o Operand) bool {
	tree := o.Kind == Write && o.Tree && o.Part == ""
	stays := !o.Link && (c.Loses == "" || c.Moves)
	keepsPaths := c.hasFlag("--parents") || c.Name == "rsync" && c.hasFlag("-R")
	if keepsPaths || o.Word.Dynamic {
		return false
	}
	return tree && stays
}

// Brings returns the trees whose files a command brings. all means that it may bring any file.
func (c *Command) Brings() (trees []Word, all bool) {
	for _, o := range c.Operands {
		if o.Kind == Read && o.Tree {
			trees, all = append(trees, o.Word), all || o.Word.Dynamic
		}
	}
	return trees, all || len(trees) == 0
}

// MovesFiles reports whether a command may make or move links, and whether it copies them.
func (c *Command) MovesFiles() (moves, copies bool) {
	copies = c.Name == "cp" && slices.ContainsFunc([]string{"-r", "-d", "-P", "-s", "--no-dereference", "--preserve"}, c.MayHave)
	gone := func(o Operand) bool { return o.Link && o.Kind == Write }
	return copies || IsField("ln rsync", c.Name) || slices.ContainsFunc(c.Operands, gone), copies
}

// MovesAny reports whether it is not known what a command moves, or whether it makes links of what it copies.
func (c *Command) MovesAny() bool {
	return c.Name == "cp" && c.MayHave("-s") || slices.ContainsFunc(c.Operands, func(o Operand) bool {
		return o.Word.Dynamic && (o.Link || o.Kind == Read)
	})
}

// evaluates reports whether the code of a command may run what it reads.
func (c *Command) evaluates(words []Word) bool {
	evals := []string{"eval", "exec", "system", "spawn", "popen", "subprocess", "Function(", "loadstring", "qx", "`", "sh -c"}
	if c.spec.inherits("code") && c.spec.root().has("reader") {
		return true
	}
	return c.runsScript(words) || c.spec.root().inline != "" && slices.ContainsFunc(words, func(w Word) bool {
		return slices.ContainsFunc(evals, func(eval string) bool { return strings.Contains(w.Text, eval) })
	})
}
