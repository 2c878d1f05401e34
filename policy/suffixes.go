package policy

import (
	"iter"
	"slices"
	"strings"

	"github.com/toold/toold/shell/programs"
)

// An unknown program may run the command in its arguments, so ask and deny rules are tried on each suffix.

type search struct {
	policy   *Policy
	found    []match
	noted    map[*rule]bool // already matched; not tried on other suffixes
	denied   bool           // a deny rule matched
	classes  bool           // class rules may apply to commands that it runs
	left     int            // remaining number of words to try in whole suffixes
	doubtful bool           // a suffix may be no command: a match of its first word alone does not count
	speller  programs.Speller
	unnamed  []tail // suffixes for which mayBeNamed is false, until the speller may overwrite their words
}

// tail identifies the last words of a slice.
type tail struct {
	last *Word
	n    int
}

// blockingCommands returns the ask and deny rules for this command, one that it starts, or a suffix that may run.
func (p *Policy) blockingCommands(e Effect) []match {
	if len(e.Argv) == 0 {
		return nil
	}
	s := search{policy: p, noted: make(map[*rule]bool), left: maxScan}
	if s.classes = slices.ContainsFunc(p.sets, func(s *ruleSet) bool { return len(s.classes) > 0 }); s.classes {
		s.classed(e)
		s.classes = !e.Follow && !e.Absent
	}
	s.run(e.Argv, e.Dirs, 0, true, true)
	return s.found
}

// After maxScan words only scanWindow words of each suffix are tried, because all suffixes would take quadratic time.
const (
	maxScan    = 1 << 14
	scanWindow = 8
	maxNested  = 8 // of commands that start commands
)

// run tries a command and the commands that it starts. If whole is set, it also tries each suffix of a command that
// may run its words. If followed is set, scripts have their own effects and are not searched.
func (s *search) run(argv []Word, dirs []string, depth int, followed, whole bool) {
	c := s.spell(argv)
	named := c.AsProgram(argv)
	s.command(&c, argv, dirs)
	followed = followed && c.Followed() && c.Opaque == ""
	for _, run := range c.Runs {
		if run.Script.Text != "" && (run.Language == "text" || !followed) {
			s.suffixes(programs.InText(run.Script.Text))
		}
		if len(run.Argv) > 0 && depth <= maxNested && s.left > 0 {
			s.inner(run.Argv)
			s.run(run.Argv, nil, depth+1, followed, true)
		}
	}
	if named != nil {
		s.suffix(named)
	}
	if whole {
		again := s.spell(argv) // searching them has overwritten the speller's memory
		s.suffixes(again.MayRun(argv))
	}
}

func (s *search) spell(argv []Word) programs.Command {
	s.unnamed = s.unnamed[:0]
	return s.speller.Spell(argv)
}

// suffixes tries commands that words may contain.
func (s *search) suffixes(commands iter.Seq2[[]Word, bool]) {
	outer := s.doubtful
	for argv, doubtful := range commands {
		if s.denied {
			break
		}
		s.doubtful = outer || doubtful
		s.suffix(argv)
	}
	s.doubtful = outer
}

func (s *search) suffix(argv []Word) {
	if argv[0].Dynamic && argv[0].Text == "" {
		return // no rule is for an unknown program
	}
	name := programs.Unversioned(argv[:1])[0].Text
	if s.left -= 1 + len(argv)/512; s.left <= 0 {
		argv = argv[:min(len(argv), scanWindow)]
	}
	program := programs.Find(name)
	mayBeClassed := s.classes && program.Classed()
	if !mayBeClassed && !s.policy.isAbout(program) && !s.mayBeNamed(argv) {
		return
	}
	if argv[0].Text != name {
		argv = append([]Word{{Text: name, Dynamic: argv[0].Dynamic}}, argv[1:]...)
	}
	if len(argv) > 1 && argv[1].Text == "--" { // start-stop-daemon -x rm -- -r a
		argv = slices.Delete(slices.Clone(argv), 1, 2)
	}
	if mayBeClassed {
		s.inner(argv)
	}
	s.run(argv, nil, 0, false, false)
}

// mayBeName reports whether a doubtful match is only a name: its first word alone matches the rule.
func (s *search) mayBeName(cp *commandPattern, program Word) bool {
	if !s.doubtful {
		return false
	}
	c := programs.Spell([]Word{program})
	return cp.means(&c, []Word{program})
}

// matched records a match. A built-in denial becomes Ask if it depends on unknown words.
func (s *search) matched(cp *commandPattern, argv []Word, dirs []string) {
	if cp.rule.Action == Deny && cp.rule.file == "" && !cp.certain(argv, dirs) {
		s.found = append(s.found, match{cp.rule, Ask, true, offered(argv)})
		return // a later match may be certain
	}
	s.note(cp.rule, argv)
}

func (s *search) note(r *rule, argv []Word) {
	s.noted[r] = true
	s.denied = s.denied || r.Action == Deny
	s.found = append(s.found, match{r, r.Action, true, offered(argv)})
}

// offered copies as many words as patternOf accepts, and one more, because argv is reused.
func offered(argv []Word) []Word { return slices.Clone(argv[:min(len(argv), maxPattern/2+1)]) }

func (cp *commandPattern) certain(argv []Word, dirs []string) bool {
	if !slices.ContainsFunc(argv, func(w Word) bool { return w.Dynamic }) {
		return true
	}
	known := slices.Clone(argv)
	for i, w := range known {
		if w.Dynamic {
			known[i] = Word{Text: w.Text + "\x00"} // a word that no pattern matches
		}
	}
	c := programs.Spell(known)
	return cp.blocks(&c, known, dirs)
}

func (s *search) command(c *programs.Command, argv []Word, dirs []string) {
	s.left -= len(argv) + 6*len(c.Flags)
	for _, list := range s.policy.named(c.Base) {
		found := list.blocking(c)
		s.left -= len(argv) * len(found)
		for _, cp := range found {
			if !s.noted[cp.rule] && cp.blocks(c, argv, dirs) && !s.mayBeName(cp, argv[0]) {
				s.matched(cp, argv, dirs)
			}
		}
	}
	if c.Or != nil && c.Or.Base != c.Base {
		s.command(c.Or, argv, dirs)
	}
}

// Classes of commands, from the specifications of their programs.
const (
	classDestructive = "destructive" // loses work that cannot be restored
	classOutgoing    = "outgoing"    // sends something off this machine
)

func (s *search) classed(e Effect) {
	var of classes
	for _, set := range s.policy.sets {
		for _, r := range set.classes {
			if s.noted[r] || !r.mayBeIn(e.Dirs) {
				continue
			}
			if of == nil {
				of = classesOf(e)
			}
			alone := s.doubtful && classesOf(Effect{Argv: e.Argv[:1]}).why(r) != ""
			if of.why(r) != "" && !alone && !excepted(r, e.Argv) {
				s.note(r, e.Argv)
			}
		}
	}
}

func (s *search) inner(argv []Word) {
	if s.classes {
		s.left -= 4 * len(argv)
		temporary := func(w Word) bool { return strings.Contains(w.Text, "/tmp") }
		s.classed(Effect{Argv: argv, Kept: programs.Parse(argv).Moves && !slices.ContainsFunc(argv, temporary)})
	}
}

func excepted(r *rule, argv []Word) bool {
	return slices.ContainsFunc(r.not, func(not pattern) bool {
		_, ok := not.matchesAllow(argv)
		return ok
	})
}

type classes map[string]string

func (c classes) why(r *rule) string {
	for _, name := range r.Classes {
		if c[name] != "" {
			return c[name]
		}
	}
	return ""
}

// Leaves reports whether a call with this effect sends something off this machine.
func (e Effect) Leaves() bool {
	return e.Kind == Net || e.Kind == Exec && classesOf(e)[classOutgoing] != ""
}

// classesOf returns the classes of a command, without those of commands that it starts.
func classesOf(e Effect) classes {
	of := make(classes)
	if e.Absent { // it has no effect
		return of
	}
	c := programs.Parse(programs.Filled(e.Argv))
	if c.Loses != "" && !e.Kept {
		of[classDestructive] = "it " + c.Loses
	}
	if c.Leaves {
		of[classOutgoing] = "it sends something off this machine"
	}
	return of
}
