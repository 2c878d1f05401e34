package policy

import (
	_ "embed"
	"strings"
	"sync"
)

// Usage is what a well-known command does with its arguments, as far as they
// tell without running it.
type Usage struct {
	Known    bool // the command is in the table, with this subcommand
	Operands []Operand
	// Names are the trees that hold the files whose names it prints, if it reads
	// names: what follows in a pipe may read them.
	Names []Operand
}

// Operand is a part of a command that names a file or a host.
type Operand struct {
	Word Word
	Kind Kind   // Read, Write or Net
	Tree bool   // everything below it as well
	Part string // of the tree; see Effect
	Link bool   // the link itself is meant, not what it points to
}

// Describe looks a command up in the built-in table. It is safe for concurrent
// use. The words after the program's name that look like flags but are not in
// the table are taken as flags without a value.
//
// A program that is not known may be known to connect: then the URLs in its words
// are operands all the same.
func Describe(argv []Word) Usage {
	if len(argv) == 0 || argv[0].Dynamic {
		return Usage{}
	}
	u := describe(argv)
	if u.Names == nil {
		u.Names = listedNames(u.Operands)
	}
	if u.Names == nil && trustedName(argv[0].Text) == "ls" {
		u.Names = []Operand{{Word: Word{Text: "."}, Kind: Read, Tree: true}}
	}
	if trustedName(argv[0].Text) == "git" {
		u.Operands = append(u.Operands, gitSettings(argv)...)
	}
	return u
}

// listedNames returns the trees that a command lists or searches, with all that
// is in them.
func listedNames(operands []Operand) (out []Operand) {
	for _, o := range operands {
		if o.Kind != Read || !o.Tree && o.Part == "" {
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

// describe is Describe without git's settings.
func describe(argv []Word) Usage {
	if special, ok := specialUsage(argv); ok {
		return special
	}
	forms, words := table().find(argv)
	var best *form
	for _, f := range forms {
		// The form that writes knows the most flags. One that needs a flag, such as
		// "unzip -l", is not the one that is meant without.
		if best != nil && f.required && !f.parse(words).covered {
			continue
		}
		if best == nil || best.required && !f.required && !best.parse(words).covered || f.level == "write" || best.level != "write" && len(f.roles) > len(best.roles) {
			best = f
		}
	}
	switch {
	case best == nil:
		return Usage{Operands: hosts(argv)}
	case best.required: // such as "npm --version": with other words it does more
		return Usage{Known: true, Operands: append(hosts(argv), best.parse(longFlags(argv)).operands...)}
	}
	return Usage{Known: true, Operands: best.parse(words).operands}
}

// longFlags returns the arguments of a command. For programs whose long flags have
// one dash they are written with two: -chdir=a/b is not -c with hdir=a/b.
func longFlags(argv []Word) []Word {
	words := arguments(argv)
	if !goFlags[trustedName(argv[0].Text)] {
		return words
	}
	for i, w := range words {
		if len(w.Text) > 2 && w.Text[0] == '-' && w.Text[1] != '-' {
			words[i].Text = "-" + w.Text
		}
	}
	return words
}

// Suspects returns the words of a command that may be paths when its program is
// not known: all but the names of subcommands, and URLs.
func Suspects(argv []Word) []Word {
	if len(argv) == 0 {
		return nil
	}
	return arguments(argv)
}

//go:embed knowledge.txt
var knowledge string

// table is parsed once; it never changes.
var table = sync.OnceValue(func() commandTable { return parseTable(knowledge) })

// commandTable finds the forms of a command by its name, with its subcommand.
type commandTable map[string][]*form

// form is one line of the table for one command.
type form struct {
	level    string // "read", "write" or "" when no preset covers it
	anyFlags bool
	flags    map[string]flag
	required bool // one of the flags marked ! must be there
	roles    []string
}

// flag is what the table says of one flag.
type flag struct {
	values  string // one of ":<>" for each value that follows
	tree    bool
	write   bool
	replace bool // takes the place of the first (or, for into, the last) operand
	follows bool // links, to wherever they point
	needed  bool
	folders bool // what is written keeps the folders of what is read
	filter  byte // '+' = only files of these names, '&' = all but these
}

// find returns the forms of the longest known name, and the words after it.
func (t commandTable) find(argv []Word) ([]*form, []Word) {
	name := trustedName(argv[0].Text)
	words := argv[1:]
	if name == "git" {
		words = skipHarmlessGit(words)
	}
	for n := min(2, len(words)); n >= 0; n-- {
		full := name
		for _, w := range words[:n] {
			if w.Dynamic {
				full = ""
				break
			}
			full += " " + w.Text
		}
		if forms := t[full]; forms != nil {
			return forms, words[n:]
		}
	}
	return nil, words
}

// skipHarmlessGit drops the options before git's subcommand that change nothing.
func skipHarmlessGit(words []Word) []Word {
	for len(words) > 0 && !words[0].Dynamic {
		switch words[0].Text {
		case "--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs":
			words = words[1:]
			continue
		case "-c":
			if len(words) > 1 && !words[1].Dynamic && harmlessGitSetting(words[1].Text) {
				words = words[2:]
				continue
			}
		}
		return words
	}
	return words
}

// harmlessGitSetting reports whether a -c setting can run nothing.
func harmlessGitSetting(s string) bool {
	name, value, _ := strings.Cut(strings.ToLower(s), "=")
	return strings.HasPrefix(name, "color.") || name == "core.quotepath" || name == "core.pager" && value == "cat"
}

// parseTable reads knowledge.txt.
func parseTable(text string) commandTable {
	t := make(commandTable)
	for _, line := range strings.Split(text, "\n") {
		parts := strings.Split(line, "|")
		if strings.HasPrefix(line, "#") || len(parts) != 3 {
			continue
		}
		level, names, _ := strings.Cut(strings.TrimSpace(parts[0]), " ")
		f := &form{flags: make(map[string]flag), roles: strings.Fields(parts[2])}
		if f.roles[0] == "none" {
			f.roles = nil
		}
		f.level = strings.TrimRight(level, "!-")
		f.anyFlags = strings.HasSuffix(level, "!")
		if strings.HasSuffix(level, "-") {
			f.level = ""
		}
		for _, s := range strings.Fields(parts[1]) {
			f.addFlag(s)
		}
		for _, name := range strings.Split(names, ",") {
			name = strings.TrimSpace(name)
			t[name] = append(t[name], f)
		}
	}
	t.inherit()
	return t
}

// addFlag reads one flag of the table with its marks.
func (f *form) addFlag(s string) {
	name := strings.TrimRight(s, ":<>/%^~!+&=")
	var v flag
	for _, mark := range s[len(name):] {
		switch mark {
		case ':', '<', '>':
			v.values += string(mark)
		case '/':
			v.tree = true
		case '%':
			v.write = true
		case '^':
			v.replace = true
		case '~':
			v.follows = true
		case '+', '&':
			v.filter = byte(mark)
		case '=':
			v.folders = true
		case '!':
			v.needed, f.required = true, true
		}
	}
	f.flags[name] = v
}

// inherit gives the write form of a command the flags of its read form.
func (t commandTable) inherit() {
	for _, forms := range t {
		for _, w := range forms {
			for _, r := range forms {
				if w.level != "write" || r.level != "read" {
					continue
				}
				for name, v := range r.flags {
					if _, ok := w.flags[name]; !ok {
						w.flags[name] = v
					}
				}
			}
		}
	}
}
