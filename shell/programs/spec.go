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

// library returns the specifications by program name. They are parsed on first use and immutable.
var library = sync.OnceValue(readAll)

func program(name string) *spec {
	if parse := library()[name]; parse != nil {
		return parse()
	}
	return nil
}

type spec struct {
	name     string
	parent   *spec // nil for a program
	as       []string
	subs     map[string]*spec
	names    map[string][]string // alias: canonical words
	firsts   []string            // sorted first words of names
	forms    []*parser
	flags    map[string]*flag
	globals  map[string]*flag // flags before the subcommand
	tests    map[string]*flag // of find's expression
	harmless string           // globals that presets cover
	unsafe   []string         // flags that an allow rule must name
	safe     string           // letters excluded from unsafe
	code     []string         // flags with a command
	inline   string           // flags with code
	input    string           // see runsInput
	fetches  string           // flags with which it only fetches
	settings string           // flags that read settings from "-"
	deeper   string           // subcommands that have subcommands
	obeys    string           // files that determine what it runs
	depth    int
	is       string // attributes
	classed  bool
	special  string // names its parser in Go
	kinds    map[string]string
	loses    []mark
	moves    []mark
	leaves   []mark
	network  []mark
}

func (s *spec) has(attribute string) bool { return s != nil && IsField(s.is, attribute) }

func (s *spec) inherits(attribute string) bool {
	return s != nil && (s.has(attribute) || s.parent.inherits(attribute))
}

type flag struct {
	name   string
	values string     // one mark for each value; see specs/README
	sets   []string   // flags of which it is an alias with a value
	only   bool       // a value is optional, and in the same word
	all    []string   // its spellings
	both   [][]string // sets of flags that together are equivalent
}

// mark is a condition for losing work or sending data.
type mark struct {
	with    [][]string // one of these sets of flags
	without []string   // none of these
	unless  []string   // nor do its first words match one of these, in which "/" separates words
	args    []string   // patterns of which one must match an operand
	least   int        // minimum number of operands
	text    string
}

func readAll() map[string]func() *spec {
	stanzas := make(map[string][]string)
	all := make(map[string]func() *spec)
	entries, _ := texts.ReadDir("specs")
	for _, e := range entries {
		text, _ := texts.ReadFile("specs/" + e.Name())
		for _, this := range strings.Split("\n"+string(text), "\nprogram ")[1:] {
			heading, lines, _ := strings.Cut(this, "\n")
			names := strings.Split(strings.TrimSpace(heading), ",")
			for _, name := range names {
				stanzas[name] = append(stanzas[name], lines)
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

func parseSpec(name string, stanzas []string) *spec {
	s := newSpec(name, nil)
	for _, stanza := range stanzas {
		open := []*spec{s}
		for line := range strings.Lines(stanza) {
			key, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch rest = strings.TrimSpace(rest); key {
			case "", "#", "alias", "example":
			case "sub":
				open = nil
				for path := range strings.SplitSeq(rest, ",") {
					open = append(open, s.sub(strings.Fields(path)))
				}
			default:
				for _, s := range open {
					s.directive(key, rest)
				}
			}
		}
	}
	s.settle()
	return s
}

func newSpec(name string, parent *spec) *spec {
	return &spec{name: name, parent: parent, subs: make(map[string]*spec), names: make(map[string][]string), flags: make(map[string]*flag), globals: make(map[string]*flag), tests: make(map[string]*flag)}
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

func (s *spec) directive(key, rest string) {
	switch key {
	case "read", "read!", "write", "none":
		s.forms = append(s.forms, newParser(key, rest))
	case "flags", "globals", "tests":
		to := map[string]map[string]*flag{"flags": s.flags, "globals": s.globals, "tests": s.tests}[key]
		for _, f := range flagList(rest) {
			s.addFlag(to, f)
		}
	case "names":
		list := strings.Fields(rest)
		for _, name := range list {
			s.names[strings.ReplaceAll(name, "/", " ")] = strings.Split(list[0], "/")
		}
	case "kinds":
		if s.kinds == nil {
			s.kinds = make(map[string]string)
		}
		list := strings.Fields(rest)
		for _, name := range list {
			s.kinds[name] = list[0]
		}
	case "depth":
		s.depth, _ = strconv.Atoi(rest)
	default:
		s.field(key, rest)
	}
}

// field appends to the field named like its line.
func (s *spec) field(key, rest string) {
	texts := map[string]*string{
		"harmless": &s.harmless, "safe": &s.safe, "inline": &s.inline, "input": &s.input, "fetches": &s.fetches,
		"settings": &s.settings, "deeper": &s.deeper, "obeys": &s.obeys, "special": &s.special, "is": &s.is,
	}
	lists := map[string]*[]string{"as": &s.as, "unsafe": &s.unsafe, "code": &s.code}
	marks := map[string]*[]mark{"loses": &s.loses, "moves": &s.moves, "leaves": &s.leaves, "network": &s.network}
	if text := texts[key]; text != nil {
		*text = strings.TrimSpace(*text + " " + rest)
	} else if list := lists[key]; list != nil {
		*list = append(*list, strings.Fields(rest)...)
	} else if list := marks[key]; list != nil {
		*list = append(*list, newMark(rest))
	} else {
		panic("programs: unknown line " + key + " " + rest)
	}
}

func flagList(text string) (out []*flag) {
	for token := range strings.FieldsSeq(text) {
		names := strings.TrimRight(token, flagMarks)
		v := newOption(token[len(names):])
		f := &flag{values: v.values, only: v.optional}
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

// newMark parses "CONDITIONS : text"; see specs/README.
func newMark(text string) (m mark) {
	conditions, why, _ := strings.Cut(" "+text, " : ")
	m.text = strings.TrimSpace(why)
	for token := range strings.FieldsSeq(conditions) {
		switch token[0] {
		case '!':
			if first, ok := strings.CutPrefix(token, "!="); ok {
				m.unless = append(m.unless, first)
				continue
			}
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

// root returns the specification of the program, or nil if s is nil.
func (s *spec) root() *spec {
	for s != nil && s.parent != nil {
		s = s.parent
	}
	return s
}

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
		begins, ends := from == 0 || list[from-1] == ' ', to == len(list) || list[to] == ' '
		if begins && ends {
			return strings.IndexByte(word, ' ') < 0
		}
		at = from + 1
	}
}
