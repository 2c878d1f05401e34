package programs

import "strings"

// assignRoles gives each word a role. Roles before the starred one match from the first word, roles after it from the
// last. The starred role takes the words between.
func (r *parseState) assignRoles() {
	roles := r.form.roles
	if r.has(replace) && len(roles) > 0 {
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
	var before, after span
	for _, w := range r.words {
		after.add(w, len(roles), 1)
	}
	for i, w := range r.words {
		after.add(w, len(roles), -1)
		for _, at := range positions(before, after, w, len(roles)) {
			r.applyRoleAt(roles, star, at, w, r.words[:i])
		}
		before.add(w, len(roles), 1)
	}
	for _, w := range r.target {
		r.into(w, r.words)
	}
	r.defaultOperand(roles)
}

type position struct{ before, after int }

// span is the least and the most operands that words may become.
type span struct{ least, most int }

func (s *span) add(w Word, roles, sign int) {
	if w.Many {
		s.most += roles * sign
		return
	}
	s.least, s.most = s.least+sign, s.most+sign
}

// positions returns the possible positions of a word. Distances beyond the number of roles are equivalent and
// omitted.
func positions(before, after span, w Word, roles int) (out []position) {
	if w.Many {
		before.most, after.most = before.most+roles, after.most+roles
	}
	for b := before.least; b <= min(before.most, max(before.least, roles)); b++ {
		for a := after.least; a <= min(after.most, max(after.least, roles)); a++ {
			out = append(out, position{b, a})
		}
	}
	return out
}

// applyRoleAt applies the role of a position. Without a starred role, star is the number of roles.
func (r *parseState) applyRoleAt(roles []string, star int, at position, w Word, words []Word) {
	fixed := max(len(roles)-star-1, 0)
	switch {
	case star < len(roles) && at.after < fixed:
		r.applyRole(roles[len(roles)-at.after-1], w, words)
	case at.before < star && at.before < len(roles):
		r.applyRole(roles[at.before], w, words)
	case star < len(roles):
		r.applyRole(strings.TrimSuffix(roles[star], "*"), w, nil)
	default:
		r.out.covered = false
		r.out.suspects = append(r.out.suspects, w)
		r.applyRole("read", w, nil)
	}
}

// defaultOperand adds the working directory, which some programs use if there is no operand.
func (r *parseState) defaultOperand(roles []string) {
	if len(roles) == 0 || len(r.words) >= len(roles) || r.has(write) {
		return
	}
	switch last := roles[len(roles)-1]; {
	case last == "names*", last == "entry*", last == "list*" && r.has(tree):
		r.add(Word{Text: "."}, Operand{Kind: Read, Tree: true, Part: PartNames})
	case last == "gone": // of git init
		r.add(Word{Text: "."}, Operand{Kind: Write})
	case last == "tree*" || r.has(tree):
		r.add(Word{Text: "."}, Operand{Kind: Read, Tree: true})
	}
}

var roleOperands = map[string][]Operand{
	"read":   {{Kind: Read}},
	"tree":   {{Kind: Read, Tree: true}},
	"list":   {{Kind: Read, Part: PartNames}},
	"look":   {{Kind: Read, Part: PartAttributes}},
	"names":  {{Kind: Read, Tree: true, Part: PartNames}},
	"gotree": {{Kind: Read, Tree: true, Part: ".go"}},
	"write":  {{Kind: Write}},
	"entry":  {{Kind: Read, Tree: true, Link: true, Part: PartNames}},
	"moved":  {{Kind: Read, Tree: true, Link: true}, {Kind: Write, Tree: true, Link: true}},
	"gone":   {{Kind: Write, Tree: true, Link: true}},
	"link":   {{Kind: Read, Tree: true}, {Kind: Write, Tree: true}},
	"script": {{Kind: Read, Role: "script"}},
}

// addWritten adds an operand that a flag may have written: gofmt -w, and cp -l, which reads it as well.
func (r *parseState) addWritten(role string, w Word, o Operand) {
	written := IsField("tree read", role) && r.has(write)
	if !written || role == "read" {
		r.add(w, o)
	}
	if written {
		o.Kind = Write
		r.add(w, o)
	}
}

func (r *parseState) applyRole(role string, w Word, before []Word) {
	for _, o := range roleOperands[role] {
		o.Tree = o.Tree || r.has(tree)
		r.addWritten(role, w, o)
	}
	switch role {
	case "read":
		r.argumentFile(w)
	case "gotree":
		if r.has(write) {
			r.add(w, Operand{Kind: Write, Tree: true, Part: ".go"})
		}
	case "chart":
		r.chart(w)
	case "gitread":
		r.gitRevision(w)
	case "host", "hostport", "saved":
		r.host(role, w)
	case "into":
		r.into(w, before)
	default:
		r.out.covered = r.out.covered && (roleOperands[role] != nil || harmlessWord(role, w))
	}
}

// argumentFile handles @file, which may name more files.
func (r *parseState) argumentFile(w Word) {
	if file, ok := strings.CutPrefix(w.Text, "@"); ok {
		r.add(Word{Text: file, Dynamic: w.Dynamic}, Operand{Kind: Read})
		r.unlistedRead = r.unlistedRead || r.form.spec.root().has("options")
		r.out.covered = r.out.covered && !r.unlistedRead
	}
}

func harmlessWord(role string, w Word) bool {
	switch role {
	case "mode":
		return plainMode(w)
	case "plus": // dates without + set the clock
		return strings.HasPrefix(w.Text, "+")
	case "setting": // a word without a dot is a subcommand
		return !w.Dynamic && strings.Contains(w.Text, ".")
	case "jq": // modules that are imported are files
		return !w.Dynamic && !strings.Contains(w.Text, "import") && !strings.Contains(w.Text, "include")
	}
	return role == "word"
}

// into handles a file, or a directory that receives the sources.
func (r *parseState) into(w Word, before []Word) {
	r.add(w, Operand{Kind: Write})
	for _, source := range before {
		name := baseName(strings.TrimRight(source.Text, "/"))
		if source.Dynamic || r.has(directories) || IsField(". ..", name) {
			r.add(w, Operand{Kind: Write, Tree: true})
			continue
		}
		r.add(Word{Text: w.Text + "/" + name, Dynamic: w.Dynamic}, Operand{Kind: Write, Tree: r.has(tree)})
	}
}

func (r *parseState) gitRevision(w Word) {
	r.add(w, Operand{Kind: Read, Tree: r.has(tree)})
	if strings.ContainsAny(w.Text, "*?[") {
		for _, part := range nameEnds(w) {
			r.add(Word{Text: "."}, Operand{Kind: Read, Tree: true, Part: part})
		}
	}
	before, path, ok := strings.Cut(w.Text, ":")
	if !ok {
		return
	}
	if before == "" && strings.HasPrefix(path, "(") {
		r.add(Word{Dynamic: true}, Operand{Kind: Read})
	}
	if before == "" {
		path = strings.TrimLeft(path, "/")
		if len(path) > 2 && path[1] == ':' && strings.IndexByte("0123", path[0]) >= 0 {
			path = path[2:]
		}
	}
	r.add(Word{Text: path, Dynamic: w.Dynamic}, Operand{Kind: Read})
}

func (r *parseState) chart(w Word) {
	if strings.Contains(w.Text, "://") {
		r.out.covered = false
		r.add(w, Operand{Kind: Net})
		return
	}
	r.add(w, Operand{Kind: Read, Tree: true})
}

// plainMode reports whether w is a known mode without set-id and sticky bits.
func plainMode(w Word) bool {
	if w.Dynamic || w.Text == "" {
		return false
	}
	if isNumber(w.Text) {
		return len(strings.TrimLeft(w.Text, "0")) <= 3
	}
	return strings.Trim(w.Text, "ugoa+-=rwxX,") == ""
}

// host handles a host or file URL. For saved, the program writes a file to the working directory. For hostport, a
// number after a host is a port.
func (r *parseState) host(role string, w Word) {
	isPort := isNumber(w.Text) && len(w.Text) <= len("65535") && !w.Dynamic
	if isPort && role == "hostport" && len(r.out.operands) > 0 {
		return
	}
	if file, ok := fileURL(w); ok {
		r.value('<', file)
		return
	}
	r.add(w, Operand{Kind: Net})
	if role == "saved" || r.has(named) {
		_, rest, _ := strings.Cut(w.Text, "://")
		if name := rest[strings.LastIndexByte(rest, '/')+1:]; name != "" && name != rest && !w.Dynamic {
			r.out.suspects = append(r.out.suspects, Word{Text: name})
		}
	}
}

// fileIn handles a file inside the value of a flag; see specs/README.
func (r *parseState) fileIn(kind byte, w Word) {
	o := Operand{Kind: Read}
	switch kind {
	case '[':
		o.Tree = true
		if text, _, _ := strings.Cut(w.Text, ":"); strings.ContainsAny(text, "/.~") {
			r.add(Word{Text: text, Dynamic: w.Dynamic && text == w.Text}, o)
		}
	case ')':
		if !strings.Contains(w.Text, "=") && !(w.Dynamic && w.Text == "") {
			r.add(w, o)
		}
	case '(':
		for _, part := range strings.SplitN(w.Text, ",", maxParts) {
			r.add(Word{Text: part[strings.LastIndexByte(part, '=')+1:], Dynamic: w.Dynamic}, o)
		}
	default:
		r.formField(w)
	}
}

// formField handles @file, and name=@file and name=<file of curl.
func (r *parseState) formField(w Word) {
	text, file, found := strings.Cut(w.Text, "@")
	if before, after, ok := strings.Cut(w.Text, "<"); ok && strings.HasSuffix(before, "=") {
		text, file, found = before, after, true
	}
	if found || w.Dynamic {
		r.add(Word{Text: file, Dynamic: w.Dynamic}, Operand{Kind: Read})
	}
	if strings.HasSuffix(text, "=") && found { // f=@a,b;type=c and f=@"a"
		file, _, _ = strings.Cut(strings.ReplaceAll(file, `"`, ""), ";")
		for _, part := range strings.SplitN(file, ",", maxParts) {
			r.add(Word{Text: part, Dynamic: w.Dynamic}, Operand{Kind: Read})
		}
	}
}

// filter handles a flag that selects files by name.
func (r *parseState) filter(v option, w Word) {
	switch {
	case v.filter == '+' && !strings.HasPrefix(w.Text, "!"):
		r.parts = append(r.parts, nameEnds(w)...)
	case v.filter == '&' && r.parts == nil:
		r.whole = true
	}
}

// nameEnds returns endings of the names that a pattern matches; "" stands for any.
func nameEnds(w Word) []string {
	long := len(w.Text) > 200 || strings.Count(w.Text, "{") > 2 || strings.Count(w.Text, ",") > 24
	if w.Dynamic || long || strings.ContainsRune(w.Text, '\\') {
		return []string{""}
	}
	choices := alternatives(w.Text)
	for i, c := range choices {
		choices[i] = c[strings.LastIndexAny(c, "*?[]/}{")+1:]
	}
	return choices
}

// alternatives expands a glob's first braces: a{b,c}d is abd and acd.
func alternatives(s string) (out []string) {
	before, rest, open := strings.Cut(s, "{")
	inside, after, closed := strings.Cut(rest, "}")
	if !open || !closed || strings.Contains(inside, "{") {
		return []string{s}
	}
	for choice := range strings.SplitSeq(inside, ",") {
		out = append(out, alternatives(before+choice+after)...)
	}
	return out
}

// narrow restricts whole trees to the names that flags select.
func (r *parseState) narrow() {
	if !r.whole && len(r.parts) > 0 {
		r.out.operands = inParts(r.out.operands, r.parts, func(o Operand) bool { return o.Tree && o.Part == "" })
	}
}

const maxParts = 512

// inParts replaces each selected tree that is read by one for each ending, or keeps it if that would be too many.
// ends is not empty.
func inParts(trees []Operand, ends []string, selected func(Operand) bool) []Operand {
	if len(ends) > 1 && len(trees)*len(ends) > maxParts {
		ends = []string{""}
	}
	var out []Operand
	for _, o := range trees {
		if o.Kind != Read || !selected(o) {
			out = append(out, o)
			continue
		}
		for _, o.Part = range ends {
			out = append(out, o)
		}
	}
	return out
}
