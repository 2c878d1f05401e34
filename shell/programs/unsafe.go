package programs

import (
	"slices"
	"strings"
)

// unsafe lists flags that run another program, write elsewhere or load code.
func (r *reader) unsafe(c *Command, s *spec) {
	matches := r.listed(c, s, func(s *spec) []string { return s.unsafe })
	if matches == nil {
		return
	}
	for i, w := range r.argv {
		if i > 0 && (w.mayBeFlags() || matches(i)) {
			c.Unsafe = append(c.Unsafe, i)
		}
	}
}

// listed returns a function that reports whether argv[i] is in a list of the program or subcommand. In lists, x* is a
// prefix, and a word without "-" is an operand.
func (r *reader) listed(c *Command, s *spec, list func(*spec) []string) func(i int) bool {
	root, after := s.root(), r.subcommandAt(c)
	names := list(root)
	if s != root {
		names = slices.Concat(names, list(s))
	}
	if len(names) == 0 {
		return nil
	}
	return func(i int) bool {
		safe := ""
		if after > 0 && i > after {
			safe = s.safeLetters()
		}
		return root.isUnsafe(names, r.argv[i].Text, safe)
	}
}

// unnamed adds words that contain code or settings: wildcards in rules only match operands.
func (r *reader) unnamed(c *Command, s *spec) {
	root, words := s.root(), r.argv
	switch root.special {
	case "sed", "awk":
		if c.Covers == CoversNone {
			r.scripts(c, map[string]string{"awk": "Fv"}[root.special])
		}
	case "git":
		if at := r.subcommandAt(c); at > 0 && IsField("push fetch pull", c.Sub[0]) {
			r.refspecs(c, at)
		}
		for i := 1; i < len(words); i++ {
			if verifies(words, i) {
				c.Unsafe, c.Covers = append(c.Unsafe, i), CoversNone
			}
		}
	}
	if root.has("targets") {
		r.targets(c, root)
	}
	if root.has("remotely") {
		c.Unsafe = append(c.Unsafe, c.wordAt[min(1, len(c.wordAt)):]...)
	}
	if at := r.codeAt(c, s); at > 0 {
		c.Unsafe = append(c.Unsafe, at)
	}
	for i := 1; i < len(words); i++ {
		if root.isCodeWord(words, i) {
			c.Unsafe = append(c.Unsafe, i)
		}
	}
}

// codeAt returns the index of the word that runs code or changes settings, or 0.
func (r *reader) codeAt(c *Command, s *spec) int {
	root, words, at := s.root(), r.argv, r.subcommandAt(c)
	bundled := root.special == "tar" && len(words) > 1 && !strings.HasPrefix(words[1].Text, "-")
	switch {
	case bundled && strings.ContainsAny(words[1].Text, "PIF"):
		return 1
	case at == 0:
		return 0
	case c.hasFlag("--runs"):
		return at
	case s == root || !s.has("code"):
		return 0
	}
	for at < len(words)-1 && words[at].Text != c.Sub[len(c.Sub)-1] {
		at++
	}
	return at
}

// targets adds targets that send or destroy something.
func (r *reader) targets(c *Command, root *spec) {
	for i, w := range r.argv[1:] {
		for _, m := range slices.Concat(root.leaves, root.loses) {
			if !w.Dynamic && slices.ContainsFunc(m.args, func(p string) bool { return w.mayBe(p) }) {
				c.Unsafe = append(c.Unsafe, i+1)
			}
		}
	}
}

// refspecs adds operands that overwrite or rename branches.
func (r *reader) refspecs(c *Command, at int) {
	for i := at + 1; i < len(r.argv); i++ {
		text := r.argv[i].Text
		remote := strings.Contains(text, "://") || i == at+1 && strings.Contains(text, "@")
		local := isLocal(r.argv[i]) || strings.HasPrefix(text, "--repo=") || text == "--repo"
		renames := strings.Contains(text, ":") && !remote && !strings.HasPrefix(text, "-")
		if local || renames || strings.HasPrefix(text, "+") {
			c.Unsafe = append(c.Unsafe, i)
		}
	}
}

// scripts adds scripts of sed or awk. values lists the letters whose value is not a script.
func (r *reader) scripts(c *Command, values string) {
	named := false
	for i := 1; i < len(r.argv); i++ {
		text := r.argv[i].Text
		flag := len(text) > 1 && text[0] == '-'
		if flag || !named || r.argv[i].Dynamic {
			c.Unsafe = append(c.Unsafe, i)
		}
		script := flag && strings.Contains("fe", text[1:2])
		named = named || script || !flag
		if !flag || len(text) > 2 || !strings.Contains(values+"fe", text[1:]) {
			continue
		}
		if i++; i < len(r.argv) && (script || r.argv[i].Many) {
			c.Unsafe = append(c.Unsafe, i)
		}
	}
}

// codeModules run code from their arguments or input.
const codeModules = "timeit code asyncio pdb idlelib cProfile"

// isCodeWord reports whether a word brings code that no rule sees.
func (s *spec) isCodeWord(argv []Word, i int) bool {
	before, text := argv[i-1].Text, argv[i].Text
	if s.has("modules") && strings.HasSuffix(before, "m") && IsField(codeModules, text) {
		return strings.HasPrefix(before, "-")
	}
	if s.isCodeFlag(text) && !s.has("shell") {
		return true
	}
	runs := s.inline != "" || s.has("reader") || s.has("script")
	return runs && s.mayBeSource(argv[i])
}

// mayBeSource reports whether a word names code outside of files: an open descriptor, or a URL that contains code.
func (s *spec) mayBeSource(w Word) bool { return mayNameInput(w) || s.inline != "" && isData(w.Text) }

// subcommandAt returns the index of the subcommand, or 0 if it is uncertain or missing.
func (r *reader) subcommandAt(c *Command) int {
	if len(c.Sub) == 0 {
		return 0
	}
	for i, w := range r.argv {
		if i > 0 && !w.Dynamic && w.Text == c.Sub[0] {
			return i
		}
	}
	return 0
}

// safeLetters returns letters that are not unsafe, since after the subcommand they have another meaning.
func (s *spec) safeLetters() string {
	for ; s != nil; s = s.parent {
		if s.safe != "" {
			return s.safe
		}
	}
	return ""
}

func (s *spec) isUnsafe(list []string, word, safe string) bool {
	return slices.ContainsFunc(list, func(f string) bool {
		return s.isListed(f, word) && !(len(f) == 2 && strings.Contains(safe, f[1:]))
	})
}

func (s *spec) isListed(flag, word string) bool {
	if strings.HasPrefix(word, "--") && s.has("camel") {
		word = camel(word)
	}
	if flag == word || strings.Contains(flag, "*") && Matches(flag, word) {
		return true
	}
	if !strings.HasPrefix(word, "-") {
		return false
	}
	name, _, _ := strings.Cut(word, "=")
	switch {
	case s.has("go"):
		return strings.TrimLeft(name, "-") == strings.TrimLeft(flag, "-")
	case strings.HasPrefix(word, "--"):
		return len(name) > 3 && strings.HasPrefix(flag, "--") && strings.HasPrefix(strings.TrimRight(flag, "*"), name)
	case len(flag) > 1 && flag[0] == '-' && flag[1] != '-': // -TT of zip has two letters
		return strings.Contains(word[1:], flag[1:])
	}
	return false
}

// camel converts --set-up to --setUp.
func camel(flag string) string {
	name, value, _ := strings.Cut(flag[2:], "=")
	words := strings.Split(name, "-")
	for i, w := range words[1:] {
		words[i+1] = strings.ToUpper(w[:min(1, len(w))]) + w[min(1, len(w)):]
	}
	return "--" + strings.Join(words, "") + "=" + value
}

func (r *reader) carriesCode(c *Command, s *spec) bool {
	root := s.root()
	switch {
	case s.inherits("code") || r.runsFlag(c, s) || r.takesInput(c, root):
		return true
	case root.special == "sed":
		return c.Code
	}
	return root.inline != "" && root.mayRunCode(r.argv[1:])
}

// isFed reports whether standard input may be code: no other word is, a word names it, or the program is unknown.
func (r *reader) isFed(c *Command, s *spec) bool {
	root := s.root()
	if !c.Code || !r.described(root) {
		return !r.described(root)
	}
	given := slices.ContainsFunc(r.argv[1:], func(w Word) bool { return w.Text != "-" && root.isCodeFlag(w.Text) })
	reads := c.evaluates(r.words) || r.takesInput(c, root)
	runs := root.has("stdin") && root.mayRunCode(r.argv[1:])
	return reads || runs && !given
}

// mayRunCode reports whether a flag before the first operand may carry code, or whether standard input does because
// there is no operand.
func (s *spec) mayRunCode(words []Word) bool {
	for _, w := range words {
		switch {
		case w.Number, !w.Many && w.Dynamic && s.attached(w.Text):
		case w.Dynamic && w.flagLike():
			return true
		case IsField("--version -V --help", w.Text):
			return false
		case s.isCodeFlag(w.Text):
			return true
		case !strings.HasPrefix(w.Text, "-"):
			return false // the rest belongs to the program
		}
	}
	return s.has("stdin")
}

func (r *reader) runsFlag(c *Command, s *spec) bool {
	matches := r.listed(c, s, func(s *spec) []string { return s.code })
	for i := 1; i < len(r.argv) && matches != nil; i++ {
		if matches(i) {
			return true
		}
	}
	return slices.ContainsFunc(c.Flags, c.carriesIn)
}

// carriesIn reports whether a flag carries a command in any of its spellings, bundled or not. -o=|* is a flag whose
// values begin with |.
func (c *Command) carriesIn(f Flag) bool {
	if f.spec == nil || c.spec == nil {
		return false
	}
	root := c.spec.root()
	lists := slices.Concat(root.code, strings.Fields(root.inline))
	if root != c.spec {
		lists = append(lists, c.spec.code...)
	}
	safe := ""
	if root != c.spec && root.flags[f.Name] != f.spec && root.globals[f.Name] != f.spec {
		safe = c.spec.safeLetters()
	}
	return slices.ContainsFunc(lists, func(listed string) bool {
		name, value, valued := strings.Cut(listed, "=")
		other := len(name) == 2 && strings.Contains(safe, name[1:])
		switch {
		case other || len(name) < 2 || name[0] != '-':
			return false
		case valued && !f.Value.mayBe(value):
			return false
		}
		return slices.Contains(f.spec.all, name)
	})
}

// isCodeFlag reports whether a word is a flag with code, attached or bundled.
func (s *spec) isCodeFlag(word string) bool {
	bundle := len(word) > 2 && word[0] == '-' && word[1] != '-'
	for f := range strings.FieldsSeq(s.inline) {
		letter, short := strings.CutPrefix(f, "-")
		short = short && len(letter) == 1 && !s.has("go")
		switch {
		case word == f:
			return true
		case f == "-" || !strings.Contains("+.-", f[:1]):
		case strings.HasPrefix(word, f), bundle && short && strings.Contains(word, letter):
			return true
		}
	}
	return false
}

// takesInput reports whether code may come from standard input, another descriptor, or a process
// substitution.
func (r *reader) takesInput(c *Command, s *spec) bool {
	if s.runsInput(r.words, c) {
		return true
	}
	takes, script, anywhere := s.has("reader"), s.has("script"), r.mayRunAnyFile(c, s)
	unsafe := make([]bool, len(r.argv)+1)
	for _, i := range c.Unsafe {
		unsafe[i] = true
	}
	for i, w := range r.argv[1:] {
		before := r.argv[i].Text
		value := unsafe[i] && strings.HasPrefix(before, "-")
		mayBeCode := anywhere || value || unsafe[i+1]
		switch {
		case takes && mayNameDash(w), mayBeCode && s.mayBeSource(w):
			return true
		case namesDash(w.Text) && IsField(s.settings, before):
			return true
		case script && !value && isOperand(w.Text):
			return false // the rest belongs to the script
		}
	}
	return false
}

// mayRunAnyFile reports whether any word may name a file that is run.
func (r *reader) mayRunAnyFile(c *Command, s *spec) bool {
	known := r.specified && (len(s.unsafe)+len(s.globals) > 0 || c.Known)
	return !known || s.has("reader") || s.has("script")
}

// isOperand reports whether a known word is neither empty nor like a flag.
func isOperand(text string) bool { return text != "" && text[0] != '-' }

// runsInput reports whether a program lacks all words that input lists, or has fewer operands than its number.
func (s *spec) runsInput(words []Word, c *Command) bool {
	if s.input == "" {
		return false
	}
	if slices.ContainsFunc(words, func(w Word) bool { return !w.Dynamic && IsField(s.input, w.Text) && !isNumber(w.Text) }) {
		return false
	}
	enough := 0
	if n := strings.IndexAny(s.input, "12"); n == 0 {
		enough = int(s.input[0] - '0')
	}
	return enough == 0 || len(c.Words) < enough
}

// namesDash reports whether a word is -, --flag=- or -f-.
func namesDash(text string) bool {
	if len(text) == 3 && text[0] == '-' && text[1] != '-' {
		return text[2] == '-'
	}
	return text == "-" || strings.HasSuffix(text, "=-")
}

func mayNameDash(w Word) bool {
	unknown := w.Dynamic && w.Text == "" && !w.Number
	return w.Many || unknown || namesDash(w.Text)
}

// inputNames are exact names, or prefixes if they end in "/".
const inputNames = "/dev/stdin /dev/fd/ /proc/self/fd/ /proc/thread-self/fd/"

// mayNameInput reports whether a word names or may become an open file.
func mayNameInput(w Word) bool {
	if !w.Dynamic && !strings.Contains(w.Text, "/") {
		return false
	}
	for name := range strings.FieldsSeq(inputNames) {
		i := strings.Index(w.Text, name)
		open := w.Dynamic || strings.HasSuffix(name, "/")
		whole := i >= 0 && (open || w.Text[i:] == name)
		switch {
		case whole && (i == 0 || w.Text[i-1] != '/'):
			return true
		case w.Dynamic && len(w.Text) > len("/d") && strings.HasPrefix(name, w.Text[max(strings.LastIndexByte(w.Text, '='), 0):]):
			return true
		}
	}
	return false
}
