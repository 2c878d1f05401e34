package programs

import (
	"cmp"
	"slices"
	"strings"
)

// Marks of flags are described in specs/README; traitMarks has the order of traits.
type parsed struct {
	covered  bool // every flag and the number of operands fit the parser
	operands []Operand
	suspects []Word // files that unknown flags may write
}

type parseState struct {
	traits
	form         *parser
	out          parsed
	words        []Word   // without roles
	unlistedRead bool     // an unlisted flag may name a file
	parts        []string // endings of files read in trees
	whole        bool     // which files of the trees are read is unknown
	target       []Word   // destination directories for all sources
}

func (f *parser) parse(words []Word) parsed {
	r := parseState{form: f, out: parsed{covered: true, operands: make([]Operand, 0, len(words))}, words: make([]Word, 0, len(words))}
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case !w.Dynamic && w.Text == "--":
			r.words = append(r.words, words[i+1:]...)
			i = len(words)
		case w.Many || w.Text == "" && w.Dynamic:
			r.unknownWord(w)
		case len(w.Text) < 2 || w.Text[0] != '-':
			r.words = append(r.words, w)
		case f.isLong(w.Text):
			i += r.long(w, words[i+1:])
		default:
			i += r.short(w, words[i+1:])
		}
	}
	if f.required && !r.has(needed) {
		r.out.covered = false
	}
	r.assignRoles()
	r.narrow()
	if r.unlistedRead || r.has(follows) {
		r.add(Word{Dynamic: true}, Operand{Kind: Read})
	}
	return r.out
}

func (r *parseState) unknownWord(w Word) {
	r.words, r.whole = append(r.words, w), true
	if !r.form.anyFlags {
		r.out.covered = false
	}
	for _, v := range r.form.flags {
		r.traits |= v.traits & tree
		r.unlistedRead = r.unlistedRead || !r.form.describe && strings.ContainsAny(v.values, "<.")
	}
}

// long parses a long flag and returns how many of the following words are its values.
func (r *parseState) long(w Word, rest []Word) int {
	name, value, has := strings.Cut(w.Text, "=")
	v, listed, ok := r.longOption(name)
	if !ok || w.Dynamic && !has {
		r.unlisted(w, value, has)
		r.suspect(w, rest)
		return 0
	}
	r.apply(v, listed)
	others := []byte(strings.ReplaceAll(v.others, v.values[:min(1, len(v.values))], ""))
	slices.Sort(others)
	for _, kind := range others {
		if has {
			r.value(kind, Word{Text: value, Dynamic: w.Dynamic})
		} else if len(rest) > 0 {
			r.value(kind, rest[0])
		}
	}
	switch {
	case has && v.values != "":
		r.filter(v, Word{Text: value, Dynamic: w.Dynamic})
		r.value(v.values[0], Word{Text: value, Dynamic: w.Dynamic, Many: w.Many})
	case has:
		r.out.covered = r.out.covered && (r.form.anyFlags || !w.Dynamic)
	default:
		return r.values(v, rest)
	}
	return 0
}

// longOption returns the option for a flag that may be abbreviated.
func (r *parseState) longOption(name string) (v option, listed, ok bool) {
	v, listed, ok = r.form.find(name)
	short := !ok && len(name) > 2
	_, _, lists := r.form.find("--files0-from")
	lists = lists && short && strings.HasPrefix("--files0-from", name)
	r.unlistedRead = r.unlistedRead || lists || strings.HasPrefix(name, "--files0")
	if short && !r.form.oneDash() {
		r.whole = true
		v, ok = r.form.abbreviated(name)
	}
	return v, listed, ok
}

// abbreviated combines the options of all flags with a prefix.
func (f *parser) abbreviated(name string) (all option, ok bool) {
	best := ""
	take := func(full string, v option) {
		if !strings.HasPrefix(full, name) {
			return
		}
		better := cmp.Or(cmp.Compare(fileRank(v.values), fileRank(all.values)), cmp.Compare(best, full)) // map order is random
		if !ok || better > 0 {
			best, all.values, all.optional = full, v.values, v.optional
		}
		if kind := v.values[:min(1, len(v.values))]; !strings.Contains(all.others, kind) {
			all.others += kind
		}
		all.traits |= v.traits
		ok = true
	}
	for full, v := range f.flags {
		take(full, v)
	}
	for s := f.spec; s != nil; s = s.parent {
		for full, other := range s.flags {
			if _, listed := f.flags[full]; !listed {
				take(full, option{values: other.values, optional: other.only})
			}
		}
	}
	return all, ok
}

// fileRank orders the values of flags: a written file, then a read file, then others.
func fileRank(values string) int {
	switch {
	case strings.Contains(values, ">"):
		return 2
	case strings.ContainsAny(values, "<@#'()["):
		return 1
	}
	return 0
}

// suspect records that an unknown flag may write to its value.
func (r *parseState) suspect(w Word, rest []Word) {
	if r.form.anyFlags {
		return
	}
	r.out.suspects = append(r.out.suspects, w)
	if len(rest) > 0 && !strings.HasPrefix(rest[0].Text, "-") {
		r.out.suspects = append(r.out.suspects, rest[0])
	}
}

// short parses bundled flags and returns how many of the following words are values.
func (r *parseState) short(w Word, rest []Word) int {
	if v, listed, ok := r.form.find(w.Text); ok && !w.Dynamic {
		r.apply(v, listed)
		return r.values(v, rest)
	}
	if w.Dynamic {
		// More letters may follow the known prefix.
		r.unlisted(w, "", false)
	}
	likely := rest // words that the first unknown letter may take
	for text := w.Text[1:]; text != ""; {
		v, n, listed, ok := r.form.bundled(text)
		if text = text[n:]; ok {
			r.apply(v, listed)
		}
		switch {
		case !ok && isNumber(w.Text[1:]):
			return 0
		case !ok:
			r.unlisted(w, text, text != "")
			r.suspect(w, rest)
			if !r.form.anyFlags {
				return 0
			}
			if len(likely) > 0 { // the rest is its value, or more letters
				r.add(likely[0], Operand{Kind: Read})
			}
			likely = nil
		case v.values != "":
			if text != "" {
				value := Word{Text: text, Dynamic: w.Dynamic, Many: w.Many}
				r.filter(v, value)
				r.value(v.values[0], value)
				v.filter, v.values = 0, v.values[1:]
			}
			return r.values(v, rest)
		case r.form.spec.root().has("letters"):
			return 0
		}
	}
	return 0
}

// bundled returns the first option of bundled letters and its number of letters. Options with two letters take
// precedence.
func (f *parser) bundled(text string) (v option, letters int, listed, ok bool) {
	if len(text) > 1 {
		if v, listed, ok = f.find("-" + text[:2]); ok && v.values != "" {
			return v, 2, listed, ok
		}
	}
	v, listed, ok = f.find("-" + text[:1])
	return v, 1, listed, ok
}

func (r *parseState) unlisted(w Word, value string, has bool) {
	r.whole = r.whole || w.Dynamic
	if !r.form.anyFlags {
		r.out.covered = false
	}
	if !has {
		r.unlistedRead = r.unlistedRead || w.Dynamic
		return
	}
	r.add(Word{Text: value, Dynamic: w.Dynamic}, Operand{Kind: Read})
	// Another path may begin after characters such as : and @.
	i := strings.IndexByte(value, '/')
	if i > 0 && !isNameByte(value[i-1]) && !strings.HasPrefix(value[i-1:], "://") {
		r.add(Word{Text: value[i:], Dynamic: w.Dynamic}, Operand{Kind: Read})
	}
}

func isNameByte(c byte) bool { return isLetterOrDigit(c) || strings.IndexByte("_-.", c) >= 0 }

func isLetterOrDigit(c byte) bool {
	lower := c | 0x20
	letter := lower >= 'a' && lower <= 'z'
	return letter || c >= '0' && c <= '9'
}

func (r *parseState) apply(v option, listed bool) {
	r.traits |= v.traits
	if v.has(uncovered) || !listed && !r.form.anyFlags {
		r.out.covered = false
	}
	if v.has(named) {
		r.add(Word{Dynamic: true}, Operand{Kind: Write})
	}
}

// values reads the values after an option and returns their number.
func (r *parseState) values(v option, rest []Word) int {
	if v.optional {
		return 0
	}
	for i := range len(v.values) {
		if i >= len(rest) {
			return i
		}
		r.filter(v, rest[i])
		r.value(v.values[i], rest[i])
	}
	return len(v.values)
}

func (r *parseState) value(kind byte, w Word) {
	r.files(kind, w)
	switch {
	case w.Many:
		r.unknownWord(w)
	case w.Dynamic && w.Text == "" && !r.form.anyFlags:
		r.out.covered = r.out.covered && kind == ':'
	}
}

func (r *parseState) files(kind byte, w Word) {
	switch kind {
	case '<':
		for _, text := range alternatives(w.Text) { // curl expands them
			r.add(Word{Text: text, Dynamic: w.Dynamic, Many: w.Many}, Operand{Kind: Read})
		}
	case '.':
		r.add(w, Operand{Kind: Read, Part: PartAttributes})
	case '>':
		r.writes(w)
	case '$':
		r.add(w, Operand{Kind: Net})
	case '\'':
		if i := strings.LastIndexByte(w.Text, ':'); i >= 0 || w.Dynamic {
			r.add(Word{Text: w.Text[i+1:], Dynamic: w.Dynamic}, Operand{Kind: Read})
		}
	case '@', '(', ')', '[':
		r.fileIn(kind, w)
	case '#':
		if file, found := strings.CutPrefix(w.Text, "@"); found || w.Dynamic && w.Text == "" {
			r.add(Word{Text: file, Dynamic: w.Dynamic}, Operand{Kind: Read})
		}
	}
}

// writes adds a written file, or the destination directory of all sources.
func (r *parseState) writes(w Word) {
	switch roles := r.form.roles; {
	case r.has(replace) && len(roles) > 0 && roles[len(roles)-1] == "into":
		r.target = append(r.target, w)
	case w != (Word{Text: "-"}):
		r.add(w, Operand{Kind: Write, Tree: r.has(replace | tree)})
	}
}

func (r *parseState) add(w Word, o Operand) {
	o.Word = w
	r.out.operands = append(r.out.operands, o)
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
