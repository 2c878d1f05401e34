package policy

import "strings"

// parsed is a command's words as one form of the table reads them.
type parsed struct {
	covered  bool // every flag and the number of operands are in the form
	operands []Operand
}

// reading is the state of reading words by a form.
type reading struct {
	form             *form
	out              parsed
	words            []Word // operands, before their roles are known
	tree, write      bool
	follows          bool
	replaced, needed bool
	folders          bool     // what is written keeps the folders of what is read
	unlistedRead     bool     // a flag that is not listed may name a file
	parts            []string // ends of the names of files that are read below a tree
	whole            bool     // what is left out below a tree is not known
}

// parse reads the words after the command's name.
func (f *form) parse(words []Word) parsed {
	r := reading{form: f, out: parsed{covered: true, operands: make([]Operand, 0, len(words))}, words: make([]Word, 0, len(words))}
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case !w.Dynamic && w.Text == "--":
			r.words = append(r.words, words[i+1:]...)
			i = len(words)
		case w.Text == "" && w.Dynamic:
			r.unknownWord(w)
		case len(w.Text) < 2 || w.Text[0] != '-':
			r.words = append(r.words, w)
		case w.Text[1] == '-':
			i += r.long(w, words[i+1:])
		default:
			i += r.short(w, words[i+1:])
		}
	}
	if f.required && !r.needed {
		r.out.covered = false
	}
	r.assignRoles()
	r.narrow()
	if r.unlistedRead || r.follows {
		r.add(Word{Dynamic: true}, Operand{Kind: Read})
	}
	return r.out
}

// unknownWord takes a word that could be anything: an operand, or a flag.
func (r *reading) unknownWord(w Word) {
	r.words, r.whole = append(r.words, w), true
	if !r.form.anyFlags {
		r.out.covered = false
	}
	for _, v := range r.form.flags {
		r.tree = r.tree || v.tree
		r.unlistedRead = r.unlistedRead || strings.Contains(v.values, "<")
	}
}

// long reads a flag that begins with --. It returns how many of the following
// words are its values.
func (r *reading) long(w Word, rest []Word) int {
	name, value, has := strings.Cut(w.Text, "=")
	if strings.HasPrefix(name, "--files0") {
		r.unlistedRead = true // it reads the files that are named there
	}
	v, ok := r.form.flags[name]
	if !ok && len(name) > 3 {
		v, ok = r.form.abbreviated(name)
		r.whole = true
		r.out.covered = r.out.covered && r.form.anyFlags
	}
	if !ok || w.Dynamic && !has {
		r.unlisted(w, value, has)
		return 0
	}
	r.apply(v)
	if has {
		// Optional values are written with =; a flag listed without one takes none
		// that matters.
		if v.values != "" {
			r.filter(v, Word{value, w.Dynamic})
			r.value(v.values[0], Word{value, w.Dynamic})
		} else if !r.form.anyFlags && w.Dynamic {
			r.out.covered = false
		}
		return 0
	}
	return r.values(v, rest)
}

// abbreviated returns the listed flag a long flag is short for. Of several, the
// one that does most counts: which of them it is, or that it is none, the command
// will say.
func (f *form) abbreviated(name string) (best flag, ok bool) {
	for full, v := range f.flags {
		if strings.HasPrefix(full, name) && (!ok || strings.ContainsAny(v.values, "<>") && !strings.Contains(best.values, ">")) {
			best, ok = v, true
		}
	}
	return best, ok
}

// short reads a word of bundled one-letter flags.
func (r *reading) short(w Word, rest []Word) int {
	if v, ok := r.form.flags[w.Text]; ok && !w.Dynamic {
		r.apply(v)
		return r.values(v, rest)
	}
	if w.Dynamic {
		// Letters may follow: it is judged by what is known, and not covered.
		r.unlisted(w, "", false)
	}
	for i := 1; i < len(w.Text); i++ {
		v, ok := r.form.flags["-"+w.Text[i:i+1]]
		if !ok {
			if !isNumber(w.Text[1:]) {
				r.unlisted(w, w.Text[i+1:], i+1 < len(w.Text))
			}
			return 0
		}
		r.apply(v)
		if v.values == "" {
			continue
		}
		if i+1 < len(w.Text) {
			r.filter(v, Word{w.Text[i+1:], w.Dynamic})
			r.value(v.values[0], Word{w.Text[i+1:], w.Dynamic})
			v.filter, v.values = 0, v.values[1:]
		}
		return r.values(v, rest)
	}
	return 0
}

// unlisted takes a flag that is not in the table.
func (r *reading) unlisted(w Word, value string, has bool) {
	r.whole = r.whole || w.Dynamic
	if !r.form.anyFlags {
		r.out.covered = false
	}
	if has {
		r.add(Word{value, w.Dynamic}, Operand{Kind: Read})
		// After a sign such as : or @ another path may begin.
		if i := strings.IndexByte(value, '/'); i > 0 && !isNameByte(value[i-1]) && !strings.HasPrefix(value[i-1:], "://") {
			r.add(Word{value[i:], w.Dynamic}, Operand{Kind: Read})
		}
	} else if w.Dynamic {
		r.unlistedRead = true
	}
}

// isNameByte reports whether a byte before a slash belongs to the name of a folder.
func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
}

// apply records what a flag does to the operands.
func (r *reading) apply(v flag) {
	r.tree = r.tree || v.tree
	r.write = r.write || v.write
	r.follows = r.follows || v.follows
	r.replaced = r.replaced || v.replace
	r.folders = r.folders || v.folders
	r.needed = r.needed || v.needed
}

// values reads the values of a flag from the words after it.
func (r *reading) values(v flag, rest []Word) int {
	for i := range len(v.values) {
		if i >= len(rest) {
			return i
		}
		r.filter(v, rest[i])
		r.value(v.values[i], rest[i])
	}
	return len(v.values)
}

// value reads one value of a flag.
func (r *reading) value(kind byte, w Word) {
	switch kind {
	case '<':
		r.add(w, Operand{Kind: Read})
	case '>':
		// It may be a folder into which the sources go, whatever their names.
		r.add(w, Operand{Kind: Write, Tree: r.replaced})
	}
	if w.Dynamic && w.Text == "" && !r.form.anyFlags {
		// A word that may become several is no value.
		r.out.covered = r.out.covered && kind == ':'
	}
}

// add records an operand.
func (r *reading) add(w Word, o Operand) {
	o.Word = w
	r.out.operands = append(r.out.operands, o)
}

// assignRoles gives the operands their roles: fixed ones from both ends, a
// starred one for what is between.
func (r *reading) assignRoles() {
	roles := r.form.roles
	if r.replaced && len(roles) > 0 {
		if roles[len(roles)-1] == "into" {
			roles = roles[:len(roles)-1]
		} else {
			roles = roles[1:]
		}
	}
	star := len(roles)
	for i, role := range roles {
		if strings.HasSuffix(role, "*") {
			star = i
		}
	}
	after := max(len(roles)-star-1, 0)
	for i, w := range r.words {
		switch left := len(r.words) - i; {
		case star < len(roles) && left <= after:
			r.role(roles[len(roles)-left], w, r.words[:i])
		case i < star && i < len(roles):
			r.role(roles[i], w, r.words[:i])
		case star < len(roles):
			r.role(strings.TrimSuffix(roles[star], "*"), w, nil)
		default:
			r.out.covered = false
			r.add(w, Operand{Kind: Read})
		}
	}
	r.defaultOperand(roles)
}

// defaultOperand adds the working directory for commands that walk it when they
// are given nothing.
func (r *reading) defaultOperand(roles []string) {
	if len(roles) == 0 || len(r.words) >= len(roles) || r.write {
		return
	}
	switch last := roles[len(roles)-1]; {
	case last == "names*" || last == "entry*" || last == "list*" && r.tree:
		r.add(Word{Text: "."}, Operand{Kind: Read, Tree: true, Part: PartNames})
	case last == "tree*" || r.tree:
		r.add(Word{Text: "."}, Operand{Kind: Read, Tree: true})
	}
}

// role turns an operand into what is done to it.
func (r *reading) role(role string, w Word, before []Word) {
	switch role {
	case "read":
		r.add(w, Operand{Kind: Read, Tree: r.tree})
		if file, ok := strings.CutPrefix(w.Text, "@"); ok { // a file with more words, for some
			r.add(Word{file, w.Dynamic}, Operand{Kind: Read})
		}
	case "tree":
		kind := Read
		if r.write {
			kind = Write
		}
		r.add(w, Operand{Kind: kind, Tree: true})
	case "list":
		r.add(w, Operand{Kind: Read, Tree: r.tree, Part: PartNames})
	case "names":
		r.add(w, Operand{Kind: Read, Tree: true, Part: PartNames})
	case "gotree":
		r.add(w, Operand{Kind: Read, Tree: true, Part: ".go"})
		if r.write {
			r.add(w, Operand{Kind: Write, Tree: true, Part: ".go"})
		}
	case "gitread":
		r.gitRevision(w)
	case "write":
		r.add(w, Operand{Kind: Write, Tree: r.tree})
	case "entry":
		r.add(w, Operand{Kind: Read, Tree: true, Link: true, Part: PartNames})
	case "gone":
		r.add(w, Operand{Kind: Write, Tree: true, Link: true})
	case "link":
		r.add(w, Operand{Kind: Read, Tree: true})
		r.add(w, Operand{Kind: Write, Tree: true})
	case "into":
		r.into(w, before)
	default:
		r.out.covered = r.out.covered && harmlessWord(role, w)
	}
}

// harmlessWord reports whether an operand that is no file is one the command is
// covered with.
func harmlessWord(role string, w Word) bool {
	switch role {
	case "mode":
		return plainMode(w)
	case "plus": // date: anything but a format sets the clock
		return strings.HasPrefix(w.Text, "+")
	case "setting": // one that is named is shown; a word without a dot is a subcommand
		return !w.Dynamic && strings.Contains(w.Text, ".")
	case "jq": // a program that imports reads files
		return !w.Dynamic && !strings.Contains(w.Text, "import") && !strings.Contains(w.Text, "include")
	}
	return role == "word"
}

// into takes a destination that may be a folder: what is written is it, or a
// name of the sources in it.
func (r *reading) into(w Word, before []Word) {
	r.add(w, Operand{Kind: Write})
	for _, source := range before {
		name := baseName(strings.TrimRight(source.Text, "/"))
		switch {
		case source.Dynamic || r.folders:
			r.add(w, Operand{Kind: Write, Tree: true})
		case name == "." || name == "..":
			r.add(w, Operand{Kind: Write, Tree: true})
		default:
			r.add(Word{w.Text + "/" + name, w.Dynamic}, Operand{Kind: Write, Tree: r.tree})
		}
	}
}

// gitRevision takes a word that is a revision, a path, or a path in a revision.
func (r *reading) gitRevision(w Word) {
	r.add(w, Operand{Kind: Read})
	if before, path, ok := strings.Cut(w.Text, ":"); ok {
		if before == "" {
			path = strings.TrimLeft(path, "/") // a message that is looked for, or a path from the top
		}
		r.add(Word{path, w.Dynamic}, Operand{Kind: Read})
	}
}

// plainMode reports whether a chmod mode sets no set-id or sticky bit.
func plainMode(w Word) bool {
	if w.Dynamic || w.Text == "" {
		return false
	}
	if isNumber(w.Text) {
		return len(strings.TrimLeft(w.Text, "0")) <= 3
	}
	return strings.Trim(w.Text, "ugoa+-=rwxX,") == ""
}

// isNumber reports whether s is made of digits.
func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
