package programs

import (
	"iter"
	"slices"
	"strings"
)

// carries reports whether any word may start a command that the program runs.
func (r *reader) carries(s *spec) bool {
	root := s.root()
	carries := root.has("carries") || s.has("carries")
	runs := root.has("runs") || s.has("code")
	starts := (carries || runs) && !s.inherits("data")
	return starts || !r.described(root)
}

// described reports whether the specification says more of the program than its name.
func (r *reader) described(root *spec) bool { return r.trusted && r.specified && !root.bare() }

// setsOnly reports whether a command can only be in the value of a word that sets a variable: the other words are
// targets. A file of the project named like a build program may do anything with them.
func (s *spec) setsOnly(program string) bool {
	_, trusted := System(program)
	return s.has("sets") && (trusted || IsField("gradlew mvnw", baseName(program)))
}

// begin says whether a command may begin at a word.
type begin byte

const (
	inert   begin = iota // no command
	mayBe                // unknown
	carried              // the program may run it
)

// MayRun yields the commands that may be among the words. Each begins in a word, maybe in the middle of it, and
// continues in the following words. doubtful means that the specification does not say that the program runs its
// words.
func (c *Command) MayRun(argv []Word) iter.Seq2[[]Word, bool] {
	words := c.searched(argv[1:])
	begins, letters := c.beginnings(argv[0].Text, words), c.spec.codeLetters()
	return func(yield func([]Word, bool) bool) {
		flat, from := flattened(words, begins)
		for i, w := range words {
			doubtful, last := begins[i] == mayBe, i+1 == len(words)
			if begins[i] == inert {
				continue
			}
			for _, part := range c.spec.behindFlags(w, letters, doubtful || c.Carries) {
				if last && len(part.Text) < minProgram && !part.Dynamic {
					continue
				}
				behind := append([]Word{part}, words[i+1:min(i+1+maxBehind, len(words))]...)
				if !yield(behind, doubtful) || !eachText(part.Text, doubtful, yield) {
					return
				}
			}
			if !yield(words[i:], doubtful) || !last && !eachText(w.Text, doubtful, yield) {
				return
			}
			for at := from(i); at < from(i+1); at++ {
				if !yield(flat[at:], doubtful) {
					return
				}
			}
		}
	}
}

const (
	maxBehind  = 16 // words of a command that begins after a flag
	minProgram = 3  // letters of one without arguments there; -tlnp has none
)

// searched returns the words, followed by those from which the program assembles a command.
func (c *Command) searched(words []Word) []Word {
	switch {
	case c.Carries && slices.ContainsFunc(words, Word.isSource): // parallel
		words = slices.DeleteFunc(slices.Clone(words), Word.isSource)
		words = append(words, Word{Text: joined(words)})
	case c.spec.root().special == "sed" && c.runsScript(words):
		words = append(slices.Clip(words), Word{Text: sedParts.Replace(joined(words))})
	}
	return words
}

// sedParts replaces delimiters of sed's s///e by spaces.
var sedParts = strings.NewReplacer("/", " ", "#", " ", "@", " ", "~", " ", "_", " ", "+", " ", "^", " ")

// isSource reports whether parallel assembles its command from the words around this one.
func (w Word) isSource() bool { return IsField("::: :::+ {}", w.Text) }

// InText yields the commands that may be in a text: one for each of its words.
func InText(text string) iter.Seq2[[]Word, bool] {
	return func(yield func([]Word, bool) bool) { eachText(text, false, yield) }
}

func eachText(text string, doubtful bool, yield func([]Word, bool) bool) bool {
	if !strings.ContainsAny(text, " \t\n;|&,\\%") { // a single word is a name
		return true
	}
	for words := wordsIn(text); len(words) > 0; words = words[1:] {
		if !yield(words, doubtful) {
			return false
		}
	}
	return true
}

// flattened splits the words in which a command may begin. from returns the position of words[i] in flat, which is
// nil if none is split.
func flattened(words []Word, begins []begin) (flat []Word, from func(i int) int) {
	split := func(i int) bool { return begins[i] != inert && strings.ContainsAny(words[i].Text, between) }
	first := 0
	for first < len(words) && !split(first) {
		first++
	}
	if first == len(words) {
		return nil, func(int) int { return 0 }
	}
	starts := make([]int, 0, len(words)+1)
	flat = make([]Word, 0, 2*len(words)+2)
	for i, w := range words {
		if starts = append(starts, len(flat)); split(i) {
			flat = append(flat, wordsIn(w.Text)...)
		} else {
			flat = append(flat, w)
		}
	}
	starts = append(starts, len(flat))
	return flat, func(i int) int { return starts[i] }
}

// between lists the characters that separate words of code.
const between = " \t\n\r;|&()`'\"{}[]<>,:!=$\\%#"

// escapes replaces spaces and slashes as code and URLs escape them.
var escapes = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\r`, "\n", `\f`, "\n", `\v`, "\n", `\ `, " ", `\x20`, " ", `\x09`, " ", `\x0a`, "\n", `\u0020`, " ", `\040`, " ", "%20", " ", "%09", " ", "%0a", "\n", "%0A", "\n", "%2F", "/", "%2f", "/",
	"|$", "|", "|^", "|", "|.", "|", // less runs what follows a | and a mark
	"{args:", " ", "{ args:", " ", ").arg(", " ", ").args(", " ", "\n+", "\n") // of Deno, Rust, a patch

// wordsIn splits a text as most languages would. A word with a variable is known up to the variable.
func wordsIn(text string) (out []Word) {
	if strings.ContainsAny(text, "\\%|{)\n") {
		text = escapes.Replace(text)
	}
	split := func(r rune) bool { return r != '$' && r != '%' && strings.ContainsRune(between, r) }
	out = make([]Word, 0, 2+len(text)/8)
	for word := range strings.FieldsFuncSeq(text, split) {
		if word == "+" { // concatenates texts
			continue
		}
		known, rest, dynamic := strings.Cut(word, "$")
		if dynamic = dynamic && rest != ""; !dynamic {
			known = word
		}
		out = append(out, Word{Text: known, Dynamic: dynamic})
		if text := decoded(known); text != "" {
			out = append(out, wordsIn(text)...)
		}
	}
	return out
}

// beginnings says for each word whether a command may begin at it.
func (c *Command) beginnings(program string, words []Word) []begin {
	out, root := make([]begin, len(words)), c.spec.root()
	switch {
	case root.setsOnly(program):
		for i, w := range words {
			if strings.ContainsAny(w.Text, "=! ") {
				out[i] = ofSetting(w.Text)
			}
		}
	case c.Carries || c.runsScript(words):
		raise(out, carried)
		if root.has("runs") && !root.has("reader") {
			c.unmarkSpecified(out)
		}
	case root.special == "sed" || root.special == "awk":
	default:
		c.markUndescribed(out, words)
		c.markCode(out, words)
	}
	return out
}

// unmarkSpecified clears the words of started commands that are judged by specifications of their own.
func (c *Command) unmarkSpecified(out []begin) {
	for _, run := range c.Runs {
		if run.At == 0 || run.Language != "" || run.Argv[0].Dynamic {
			continue
		}
		_, trusted := System(run.Argv[0].Text)
		if s, _ := find(run.Argv); trusted && s != nil && !s.root().bare() {
			set(out[min(run.At-1, len(out)):min(run.At-1+len(run.Argv), len(out))], inert)
		}
	}
}

// ofSetting says whether a command may begin in the value that a word sets. Flags and words such as Class#test belong
// to a command.
func ofSetting(text string) begin {
	_, value, _ := strings.Cut(text, "=")
	words := strings.HasPrefix(value, "-") || strings.Contains(value, "#")
	if words && !strings.ContainsAny(value, ";|&<>()$`'\"\\\n") {
		return mayBe
	}
	return carried
}

// raise marks all words, except those with a stronger mark.
func raise(out []begin, b begin) {
	for i := range out {
		out[i] = max(out[i], b)
	}
}

func (c *Command) runsScript(words []Word) bool {
	var script Command
	switch c.spec.root().special {
	case "sed":
		script.sed(words)
		return script.Code
	case "awk":
		script.awk(words)
		return script.Covers == CoversNone
	}
	return false
}

// markCode marks code, the values of flags that carry commands, and everything after code.
func (c *Command) markCode(out []begin, words []Word) {
	s, root := c.spec, c.spec.root()
	if root.has("shell") {
		return // the code is followed
	}
	for _, f := range c.Flags {
		if i := f.At - 1; i >= 0 && i < len(out) && c.carriesIn(f) {
			raise(out[i:min(i+2, len(out))], carried)
		}
	}
	for i, w := range words {
		switch {
		case root.isCodeFlag(w.Text):
			raise(out[i:], carried)
			return
		case isData(w.Text):
			out[i] = carried
		case root.isUnsafe(root.code, w.Text, "") || s.isUnsafe(s.code, w.Text, ""):
			raise(out[i:min(i+2, len(out))], carried)
		}
	}
}

// markUndescribed marks the words that the specification does not describe: unknown flags with their values, values of
// flags that an allow rule must name, and operands without a role.
func (c *Command) markUndescribed(out []begin, words []Word) {
	root := c.spec.root()
	followed := root.special == "find" || root.has("shell") && c.Through
	if followed || c.spec.inherits("data") || c.setsText() {
		return
	}
	raise(out, operand)
	literal := c.markFlags(out, words)
	for _, run := range c.Runs {
		if run.At > 0 {
			set(out[min(run.At-1, len(out)):], inert)
		}
	}
	roles := c.spec.operandsWithRole()
	for i, b := range out {
		if b == operand {
			out[i] = mayBe
			if filters := i > literal && filtersTests(words[i-1].Text, words[i].Text); filters || roles > 0 {
				out[i] = inert
			}
			roles--
		}
	}
}

// operand marks an operand until it is known whether it has a role.
const operand = carried + 1

// markFlags marks flags and their values. It returns the index of --, or len(out).
func (c *Command) markFlags(out []begin, words []Word) int {
	literal := len(out)
	for _, f := range c.Flags {
		i := f.At - 1
		switch {
		case i < 0 || i >= len(out):
			continue
		case f.Name == "--":
			out[i], literal = inert, i
			continue
		}
		b, values := c.ofFlag(f, words[i])
		if out[i] == operand {
			out[i] = inert
		}
		out[i] = max(out[i], b)
		set(out[i+1:min(i+1+values, len(out))], b)
	}
	return literal
}

// filtersTests reports whether a word behind -- is the value of a flag that selects tests by name, with it or behind it.
func filtersTests(before, word string) bool {
	flag, _, attached := strings.Cut(word, "=")
	return IsField(testFilters, before) || attached && IsField(testFilters, flag)
}

const testFilters = "-t --testNamePattern --test-name-pattern -g --grep -k"

func set(out []begin, b begin) {
	for i := range out {
		out[i] = b
	}
}

// ofFlag says whether a command may begin in a flag or its values, and returns the number of words that are values.
func (c *Command) ofFlag(f Flag, w Word) (b begin, values int) {
	root := c.spec.root()
	if f.spec == nil {
		if isNumber(strings.TrimLeft(f.Name, "-")) {
			return inert, 0
		}
		return mayBe, 1
	}
	if values = len(f.spec.values); f.spec.only {
		values = 0
	} else if values > 0 && len(w.Text) > 2 && strings.HasSuffix(w.Text, f.Value.Text) {
		values-- // the value is in the same word
	}
	unsafe := slices.ContainsFunc(f.spec.all, func(name string) bool {
		return slices.Contains(root.unsafe, name) || slices.Contains(c.spec.unsafe, name)
	})
	if unsafe && strings.Trim(f.spec.values, ":*") == "" {
		return mayBe, values
	}
	return inert, values
}

// operandsWithRole returns how many operands have a role.
func (s *spec) operandsWithRole() (n int) {
	if IsField("test tar ln mktemp copies", s.root().special) || s.root().has("targets") {
		return maxWords
	}
	if s.has("shell") {
		n = 1
	}
	for _, f := range s.forms {
		for _, role := range f.roles {
			if strings.HasSuffix(role, "*") && !f.required {
				return maxWords
			}
		}
		if !f.required {
			n = max(n, len(f.roles))
		}
	}
	for ; s.parent != nil; s = s.parent {
		n++ // the program's name
	}
	return n
}

const maxWords = 1 << 20

// codeLetters returns the letters of one-letter flags whose value is code or a command.
func (s *spec) codeLetters() (letters string) {
	root, safe := s.root(), s.safeLetters()
	for _, f := range slices.Concat(root.code, strings.Fields(root.inline), s.code) {
		f, _, _ = strings.Cut(strings.TrimRight(f, "*"), "=")
		if len(f) == 2 && f[0] == '-' && !strings.Contains(safe, f[1:]) {
			letters += f[1:]
		}
	}
	return letters
}

// behindFlags returns what follows one of the flags with these letters in the same word, bundled or not. With
// unknown, any letter may be such a flag. A bundle ends at a flag with a value.
func (s *spec) behindFlags(w Word, letters string, unknown bool) (out []Word) {
	end := strings.IndexAny(w.Text+" ", " \t\n=;|&")
	if w.Text == "" || w.Text[0] != '-' || strings.HasPrefix(w.Text, "--") {
		return nil
	}
	for i := 2; i < len(w.Text) && i <= end && len(out) < maxReadings; i++ {
		if unknown || strings.IndexByte(letters, w.Text[i-1]) >= 0 {
			out = append(out, Word{Text: w.Text[i:], Dynamic: w.Dynamic})
		}
		if f := s.flag("-" + w.Text[i-1:i]); f != nil && f.values != "" {
			break
		}
	}
	return out
}
