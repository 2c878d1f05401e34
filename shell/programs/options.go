package programs

import (
	"strings"
)

const (
	traitMarks = "/%^~=?!\""
	flagMarks  = traitMarks + ":<.>@#$|;'()[+&*"
)

type traits byte

const (
	tree        traits = 1 << iota // operands are whole trees
	write                          // operands are written
	replace                        // it replaces the first operand, or a file in that directory
	follows                        // links are followed to any target
	directories                    // copies keep the directories of their sources
	named                          // another machine chooses the name of the written file
	needed                         // the parser requires such a flag
	uncovered                      // no preset covers it
)

func (t traits) has(trait traits) bool { return t&trait != 0 }

// parser is compiled from one line of a specification.
type parser struct {
	level    Level
	describe bool // no preset covers it
	anyFlags bool // unlisted flags have no further effects
	flags    map[string]option
	required bool // one of the flags marked ! is required
	roles    []string
	listed   []string // the flags, in order
	spec     *spec
}

type option struct {
	traits
	values   string
	others   string // possible values of the other flags
	optional bool   // a value must be in the same word
	filter   byte   // '+' = only files with these names, '&' = all but these
}

func newParser(level, text string) *parser {
	flags, roles, _ := strings.Cut(" "+text, " | ")
	f := &parser{flags: make(map[string]option), roles: strings.Fields(roles), anyFlags: level == "read!"}
	switch level {
	case "read", "read!":
		f.level = CoversRead
	case "write":
		f.level = CoversWrite
	default:
		f.describe = true
	}
	if len(f.roles) > 0 && f.roles[0] == "none" {
		f.roles = nil
	}
	for token := range strings.FieldsSeq(flags) {
		names := strings.TrimRight(token, flagMarks)
		v := newOption(token[len(names):])
		if v.optional && v.values == "" {
			v.values = ":"
		}
		f.required = f.required || v.has(needed)
		for name := range strings.SplitSeq(names, ",") {
			f.flags[name] = v
			f.listed = append(f.listed, name)
		}
	}
	return f
}

func newOption(marks string) (v option) {
	for _, mark := range marks {
		switch i := strings.IndexRune(traitMarks, mark); {
		case i >= 0:
			v.traits |= 1 << i
		case mark == '+' || mark == '&':
			v.filter = byte(mark)
		case mark == '*':
			v.optional = true
		default:
			v.values += string(mark)
		}
	}
	return v
}

// find returns the option for a flag. listed is false if only the specification has it.
func (f *parser) find(name string) (v option, listed, known bool) {
	if v, listed = f.flags[name]; listed {
		return v, true, true
	}
	if f.oneDash() && strings.HasPrefix(name, "--") {
		return f.find(name[1:])
	}
	if other := f.spec.flag(name); other != nil {
		return option{values: other.values, optional: other.only}, false, true
	}
	return v, false, false
}

// oneDash reports whether long flags have one dash.
func (f *parser) oneDash() bool { return f.spec.root().has("go") }

func (f *parser) isLong(flag string) bool { return flag[1] == '-' || len(flag) > 2 && f.oneDash() }

// spread copies options to the other spellings of their flags.
func (f *parser) spread(s *spec) {
	f.spec = s
	for at := s; at != nil; at = at.parent {
		for _, name := range f.listed {
			known := at.flags[name]
			if known == nil {
				continue
			}
			for _, other := range known.all {
				if _, listed := f.flags[other]; !listed {
					f.flags[other] = f.flags[name]
				}
			}
		}
	}
}

// inherit copies the flags of reading parsers to writing ones.
func inherit(forms []*parser) {
	for _, w := range forms {
		for _, r := range forms {
			if w.level != CoversWrite || r.level != CoversRead {
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
