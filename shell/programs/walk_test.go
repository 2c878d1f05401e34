package programs

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// everyProgram returns the specifications by the names of their programs.
func everyProgram() map[string]*spec {
	all := make(map[string]*spec)
	for name := range library() {
		all[name] = program(name)
	}
	return all
}

// TestUnknownWordsAreNoStructure puts, at each flag of each specification, a word that
// may become several, and one that is known only at run time. What is covered all the
// same must not depend on it: no flag of the program does more than read, and that it
// may read anything is said.
func TestUnknownWordsAreNoStructure(t *testing.T) {
	t.Parallel()
	for name, s := range everyProgram() {
		if s.as == nil {
			walk(t, s, []string{name})
		}
	}
}

func walk(t *testing.T, s *spec, path []string) {
	for _, flag := range slices.Sorted(maps.Keys(s.flags)) {
		if flag == "--" {
			continue // operands follow
		}
		for _, unknown := range []Word{{Dynamic: true, Many: true}, {Text: "x", Dynamic: true, Many: true}, {Dynamic: true}} {
			argv := prepend(path, []Word{{Text: flag}, unknown})
			check(t, s, argv, unknown, flag)
			if strings.HasPrefix(flag, "--") && s.flags[flag].values != "" {
				check(t, s, prepend(path, []Word{{Text: flag + "=" + unknown.Text, Dynamic: true, Many: unknown.Many}}), unknown, flag)
			}
		}
	}
	for word, sub := range s.subs {
		walk(t, sub, append(slices.Clip(path), word))
	}
}

func check(t *testing.T, s *spec, argv []Word, unknown Word, name string) {
	c := Parse(argv)
	if c.Covers == CoversNone || c.Opaque != "" {
		return
	}
	one := !unknown.Many && s.flags[name] != nil && strings.HasPrefix(s.flags[name].values, ":")
	if one {
		return // the value of the flag, whatever it is
	}
	reads := slices.ContainsFunc(c.Operands, func(o Operand) bool { return o.Word.Dynamic })
	harmless := slices.ContainsFunc(s.forms, func(f *parser) bool { return f.anyFlags })
	only := harmless && !slices.ContainsFunc(s.forms, func(f *parser) bool { return f.level == CoversWrite })
	words := only && !slices.ContainsFunc(s.forms, func(f *parser) bool { return slices.ContainsFunc(f.roles, isFile) })
	if !only || !reads && !words {
		t.Errorf("%s is covered", plain(argv...))
	}
}

func isFile(role string) bool { return !strings.HasPrefix(role, "word") }

// TestLongFlagsOfOneDashAreNoBundles gives each program whose long flags have one dash flags
// that begin with the letter of one that it has: none is this one, or covered by a preset,
// and what is attached is not taken for its value, but may be a file that is written.
func TestLongFlagsOfOneDashAreNoBundles(t *testing.T) {
	t.Parallel()
	for name, s := range everyProgram() {
		if s.has("go") && s.special == "" {
			walkOneDash(t, s, []string{name})
		}
	}
}

func walkOneDash(t *testing.T, s *spec, path []string) {
	letters := "x"
	for name := range s.flags {
		if len(name) == 2 {
			letters += name[1:]
		}
	}
	for _, letter := range strings.Split(letters, "") {
		long := "-" + letter + "qzz"
		checkOneDash(t, s, append(slices.Clip(path), long+"=/y"), long, "/y")
		checkOneDash(t, s, append(slices.Clip(path), long, "/y"), long, "/y")
		checkOneDash(t, s, append(slices.Clip(path), "-a", "-"+long, "/y"), long, "/y")
	}
	for name := range s.flags { // the beginning of one that it has is not short for it
		if begin := strings.TrimRight(name[:max(len(name)-1, 0)], "-"); len(begin) > 3 && begin[1] != '-' && s.flags[begin] == nil {
			checkOneDash(t, s, append(slices.Clip(path), begin+"=/y"), begin, "/y")
		}
	}
	for word, sub := range s.subs {
		walkOneDash(t, sub, append(slices.Clip(path), word))
	}
}

func checkOneDash(t *testing.T, s *spec, argv []string, long, file string) {
	c := Parse(Words(argv))
	if !slices.ContainsFunc(c.Flags, func(f Flag) bool { return f.Name == long }) {
		t.Errorf("%q: %s is not among the flags %v", argv, long, c.Flags)
	}
	if slices.ContainsFunc(s.forms, func(f *parser) bool { return f.anyFlags }) || !c.Known {
		return
	}
	may := slices.ContainsFunc(c.Suspects, func(w Word) bool { return strings.HasSuffix(w.Text, file) })
	if c.Covers != CoversNone || !may {
		t.Errorf("%q: covered %v, and what it may write is %v", argv, c.Covers, c.Suspects)
	}
}

// TestFlagsBeforeCodeMustBeNamed: whoever allows an interpreter with any words does not
// mean code in these.
func TestFlagsBeforeCodeMustBeNamed(t *testing.T) {
	t.Parallel()
	for name, s := range everyProgram() {
		for flag := range strings.FieldsSeq(s.inline) {
			c := Parse(Words([]string{name, flag, "1+1"}))
			if flag != "-" && !s.has("shell") && !slices.Contains(c.Unsafe, 1) {
				t.Errorf("%s %s 1+1: an allowing rule need not name %s", name, flag, flag)
			}
		}
	}
}

// TestACommandBehindItsFlagIsSeen writes the command of each flag of one letter that carries one in a word of its own, in the
// word of the flag, and in that of a bundle.
func TestACommandBehindItsFlagIsSeen(t *testing.T) {
	t.Parallel()
	for name, s := range everyProgram() {
		if s.as == nil && !s.has("shell") {
			walkCode(t, s, []string{name})
		}
	}
}

func walkCode(t *testing.T, s *spec, path []string) {
	for _, flag := range slices.Concat(s.code, strings.Fields(s.inline)) {
		flag, _, valued := strings.Cut(strings.TrimRight(flag, "*"), "=")
		if len(flag) != 2 || flag[0] != '-' || valued {
			continue
		}
		forms := [][]string{{flag, "git push"}, {flag + "git push"}, {"-a" + flag[1:] + "git push"}}
		if s.root().has("go") {
			forms = forms[:2]
		}
		for _, argv := range forms {
			words := append(Words(path), Words(argv)...)
			c := Spell(words)
			var scripts []Word
			for run := range c.MayRun(words) {
				scripts = append(scripts, run[0])
			}
			for _, run := range c.Runs {
				scripts = append(append(scripts, run.Script), Word{Text: joined(run.Argv)})
			}
			if !slices.ContainsFunc(scripts, func(w Word) bool { return w.Text == "git push" }) {
				t.Errorf("%q: it may run %v", append(slices.Clip(path), argv...), scripts)
			}
		}
	}
	for word, sub := range s.subs {
		if sub.as == nil {
			walkCode(t, sub, append(slices.Clip(path), word))
		}
	}
}
