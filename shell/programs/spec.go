package programs

import (
	"embed"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed specs/*.txt
var texts embed.FS

// library contains the specifications by program name. Each is parsed on first use, and immutable.
var library = sync.OnceValue(func() map[string]func() *spec { return readAll(texts) })

// program returns the specification of a program, nil if there is none.
func program(name string) *spec {
	if parse := library()[name]; parse != nil {
		return parse()
	}
	return nil
}

// spec is the specification of a program, or of one of its subcommands.
type spec struct {
	name     string
	parent   *spec // nil for a program
	as       []string
	subs     map[string]*spec
	names    map[string][]string // aliases of a subcommand: its canonical words
	firsts   []string            // the first words of all names, sorted
	forms    []*parser
	flags    map[string]*flag // by every spelling
	globals  map[string]*flag // flags before the subcommand
	harmless string           // globals that presets cover
	unsafe   []string         // flags that an allow rule must name
	safe     string           // one-letter flags of the program that are harmless here
	code     []string         // flags with a command as value
	inline   string           // flags of an interpreter with code as value
	input    string           // what keeps it from running its input; see runsInput
	fetches  string           // flags with which it only fetches
	settings string           // flags that read settings from "-"
	starts   string           // subcommands that start a program by its name
	deeper   string           // subcommands with nested ones
	obeys    string           // files of the working directory that determine what it runs
	depth    int              // number of words of the subcommand
	is       string           // attributes
	classed  bool             // it, or a subcommand, may be in a class
	special  string           // the name of its parser in Go
	kinds    map[string]string
	loses    []mark
	moves    []mark
	leaves   []mark
	network  []mark
	examples []example
}

// example is a test line of a specification.
type example struct{ file, command, want string }

func (s *spec) has(attribute string) bool { return s != nil && IsField(s.is, attribute) }

type flag struct {
	name   string
	values string     // one of valueMarks for each following value; see specs/README
	sets   []string   // flags of which it is another value
	only   bool       // its value is optional, and in the same word
	all    []string   // its spellings
	both   [][]string // flags with the same meaning together
}

// mark is a condition under which a command loses work, or sends something.
type mark struct {
	with    [][]string // requires one of these sets of flags
	without []string   // and none of these
	args    []string   // patterns, one of which must match an operand
	least   int        // minimum number of operands
	text    string
}

// stanza is a section of a file for some programs.
type stanza struct{ file, text string }

func readAll(fs embed.FS) map[string]func() *spec {
	stanzas := make(map[string][]stanza)
	all := make(map[string]func() *spec)
	entries, _ := fs.ReadDir("specs")
	for _, e := range entries {
		text, _ := fs.ReadFile("specs/" + e.Name())
		_, rest, found := strings.Cut("\n"+string(text), "\nprogram ")
		for found {
			var this string
			this, rest, found = strings.Cut(rest, "\nprogram ")
			heading, lines, _ := strings.Cut(this, "\n")
			names := strings.Split(strings.TrimSpace(heading), ",")
			for _, name := range names {
				stanzas[name] = append(stanzas[name], stanza{e.Name(), lines})
			}
			for line := range strings.Lines(lines) {
				if others, ok := strings.CutPrefix(line, "alias "); ok {
					for name := range strings.FieldsSeq(others) {
						all[name] = func() *spec { return &spec{name: name, as: names[:1]} }
					}
				}
			}
		}
	}
	for name, of := range stanzas {
		all[name] = sync.OnceValue(func() *spec { return parseSpec(name, of) })
	}
	return all
}

// parseSpec parses the specification of a program.
func parseSpec(name string, stanzas []stanza) *spec {
	s := newSpec(name, nil)
	for _, st := range stanzas {
		open := []*spec{s} // which the next lines belong to
		for line := range strings.Lines(st.text) {
			key, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch rest = strings.TrimSpace(rest); key {
			case "", "#", "alias":
			case "sub":
				open = nil
				for path := range strings.SplitSeq(rest, ",") {
					open = append(open, s.sub(strings.Fields(path)))
				}
			default:
				for _, s := range open {
					s.directive(st.file, key, rest)
				}
			}
		}
	}
	s.settle()
	return s
}

func newSpec(name string, parent *spec) *spec {
	return &spec{name: name, parent: parent, subs: make(map[string]*spec), names: make(map[string][]string), flags: make(map[string]*flag), globals: make(map[string]*flag)}
}

func (s *spec) sub(path []string) *spec {
	for _, word := range path {
		if s.subs[word] == nil {
			s.subs[word] = newSpec(word, s)
		}
		s = s.subs[word]
	}
	return s
}

func (s *spec) directive(file, key, rest string) {
	switch key {
	case "read", "read!", "write", "none":
		s.forms = append(s.forms, newParser(key, rest))
	case "flags":
		for _, f := range flagList(rest) {
			s.addFlag(s.flags, f)
		}
	case "globals":
		for _, f := range flagList(rest) {
			s.addFlag(s.globals, f)
		}
	case "names":
		list := strings.Fields(rest)
		for _, name := range list {
			s.names[strings.ReplaceAll(name, "/", " ")] = strings.Split(list[0], "/")
		}
	case "kinds":
		s.kinds = addKinds(s.kinds, strings.Fields(rest))
	case "loses":
		s.loses = append(s.loses, newMark(rest))
	case "moves":
		s.moves = append(s.moves, newMark(rest))
	case "leaves":
		s.leaves = append(s.leaves, newMark(rest))
	case "network":
		s.network = append(s.network, newMark(rest))
	case "example":
		command, want, _ := strings.Cut(rest, " -> ")
		s.examples = append(s.examples, example{file, command, want})
	case "unsafe":
		s.unsafe = append(s.unsafe, strings.Fields(rest)...)
	case "code":
		s.code = append(s.code, strings.Fields(rest)...)
	case "depth":
		s.depth, _ = strconv.Atoi(rest)
	default:
		s.text(key, rest)
	}
}

func (s *spec) text(key, rest string) {
	switch key {
	case "as":
		s.as = strings.Fields(rest)
	case "harmless":
		s.harmless = rest
	case "safe":
		s.safe = rest
	case "inline":
		s.inline = rest
	case "input":
		s.input = rest
	case "fetches":
		s.fetches = rest
	case "settings":
		s.settings = rest
	case "starts":
		s.starts = rest
	case "deeper":
		s.deeper = rest
	case "obeys":
		s.obeys = rest
	case "special":
		s.special = rest
	case "is":
		s.is = strings.TrimSpace(s.is + " " + rest)
	default:
		panic("programs: unknown line " + key + " " + rest)
	}
}

// addKinds maps each name of a kind of object to the first one.
func addKinds(kinds map[string]string, names []string) map[string]string {
	if kinds == nil {
		kinds = make(map[string]string)
	}
	for _, name := range names {
		kinds[name] = names[0]
	}
	return kinds
}

// flagList parses flags: spellings separated by commas, then marks.
func flagList(text string) (out []*flag) {
	for token := range strings.FieldsSeq(text) {
		names := strings.TrimRight(token, flagMarks)
		f := &flag{}
		f.setMarks(token[len(names):])
		for _, name := range strings.Split(names, ",") {
			if other, ok := strings.CutPrefix(name, "="); ok {
				f.sets = append(f.sets, other)
				continue
			}
			if strings.Contains(name, "+") && len(name) > 1 {
				f.both = append(f.both, strings.FieldsFunc(name, func(r rune) bool { return r == '+' }))
				continue
			}
			f.all = append(f.all, name)
		}
		f.name = f.all[0]
		out = append(out, f)
	}
	return out
}

// setMarks sets the marks for a flag's values.
func (f *flag) setMarks(marks string) {
	for _, mark := range marks {
		if strings.ContainsRune(valueMarks, mark) {
			f.values += string(mark)
		}
		f.only = f.only || mark == '*'
	}
}

// addFlag adds a flag under its spellings. Marks of one line apply to all.
func (s *spec) addFlag(to map[string]*flag, f *flag) {
	for _, name := range f.all {
		if known := to[name]; known != nil {
			if known.values == "" {
				known.values, known.only = f.values, f.only
			}
			continue
		}
		to[name] = f
	}
}

// newMark parses "CONDITIONS : text". a+b needs both, !a excludes, =x is an operand, #2 a number of
// operands.
func newMark(text string) (m mark) {
	conditions, why, _ := strings.Cut(" "+text, " : ")
	m.text = strings.TrimSpace(why)
	for token := range strings.FieldsSeq(conditions) {
		switch token[0] {
		case '!':
			m.without = append(m.without, token[1:])
		case '=':
			m.args = append(m.args, strings.ToLower(token[1:]))
		case '#':
			m.least, _ = strconv.Atoi(token[1:])
		default:
			m.with = append(m.with, strings.Split(token, "+"))
		}
	}
	return m
}

// settle completes a specification after its last line.
func (s *spec) settle() {
	for _, f := range s.forms {
		for name, v := range f.flags {
			s.addFlag(s.flags, &flag{name: name, all: []string{name}, values: v.values, only: v.optional})
		}
		f.spread(s)
	}
	for name, f := range s.globals {
		if other := s.flags[name]; other != nil && other.values == "" {
			other.values, other.only = f.values, f.only
		}
	}
	inherit(s.forms)
	s.classed = len(s.loses)+len(s.moves)+len(s.leaves) > 0
	for name := range s.names {
		first, _, _ := strings.Cut(name, " ")
		s.firsts = append(s.firsts, first)
	}
	for name, sub := range s.subs {
		s.firsts = append(s.firsts, name)
		sub.settle()
		s.classed = s.classed || sub.classed
	}
	slices.Sort(s.firsts)
	s.firsts = slices.Compact(s.firsts)
}

// root returns the specification of the program.
func (s *spec) root() *spec {
	for s.parent != nil {
		s = s.parent
	}
	return s
}

// flag finds a flag of the subcommand or of its program.
func (s *spec) flag(name string) *flag {
	for at := s; at != nil; at = at.parent {
		if f := at.flags[name]; f != nil {
			return f
		}
	}
	if root := s.root(); s == root || !root.has("ordered") {
		return root.globals[name]
	}
	return nil
}

// IsField reports whether a space-separated list has a word.
func IsField(list, word string) bool {
	if word == "" {
		return false
	}
	for at := 0; ; {
		i := strings.Index(list[at:], word)
		if i < 0 {
			return false
		}
		from, to := at+i, at+i+len(word)
		if (from == 0 || list[from-1] == ' ') && (to == len(list) || list[to] == ' ') {
			return strings.IndexByte(word, ' ') < 0
		}
		at = from + 1
	}
}
