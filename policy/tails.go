package policy

import (
	"slices"
	"strings"

	"github.com/toold/toold/shell/programs"
)

// A program that is not known here may run what is in its words. Each end of them is therefore tried as a command of its own, for
// the rules that ask and deny.

// search looks for the asking and denying command rules that could mean a command.
type search struct {
	policy   *Policy
	consider found
	noted    map[*rule]bool // the same rule says nothing new of another end of the command
	denied   bool           // nothing is stricter
	classes  bool           // rules about classes may be about what it runs, too
	left     int            // words that may still be looked at in whole ends
	speller  programs.Speller
}

// blockingCommands reports every asking or denying command rule that could mean this command, with the words that it means: those
// of the command, of one that it starts, or of an end of it that may be run.
func (p *Policy) blockingCommands(e Effect, consider found) {
	if len(e.Argv) == 0 {
		return
	}
	s := search{policy: p, consider: consider, noted: make(map[*rule]bool), left: maxScan}
	if s.classes = slices.ContainsFunc(p.sets, func(s *ruleSet) bool { return len(s.classes) > 0 }); s.classes {
		s.classed(e)
		s.classes = !e.Follow && !e.Absent
	}
	s.run(e.Argv, e.Dirs, 0, true, true)
}

// Trying every tail of a command takes time that grows with the square of its length. Beyond maxScan words, only the first
// scanWindow words of a tail are looked at: no command that people write is longer.
const (
	maxScan    = 1 << 14
	scanWindow = 8
	maxStarts  = 8 // commands that start commands
)

// run tries a command and those that it starts; whole, also each end of one that carries others. Where all is followed, a script
// has effects of its own, and is not searched for what looks like a command.
func (s *search) run(argv []Word, dirs []string, depth int, followed, whole bool) {
	c := s.speller.Spell(argv)
	s.command(&c, argv, dirs)
	followed = followed && c.Followed() && c.Opaque == ""
	for _, run := range c.Runs {
		if run.Script.Text != "" && (run.Language == "text" || !followed) {
			s.text(run.Script.Text)
		}
		if len(run.Argv) > 0 && depth <= maxStarts && s.left > 0 {
			s.inner(run.Argv)
			s.run(run.Argv, nil, depth+1, followed, true)
		}
	}
	if whole {
		s.ends(c.MayRun(argv))
	}
}

// ends tries each end of some words, and what is in them that looks like a script.
func (s *search) ends(words []Word) {
	some := s.policy.mayBeNamed(words)
	for ; len(words) > 0 && !s.denied; words = words[1:] {
		text := words[0].Text
		s.tail(words, some)
		s.text(text)
	}
}

func (s *search) text(text string) {
	if strings.ContainsAny(text, " \t\n;|&") {
		s.ends(wordsIn(text))
	}
}

// tail tries the end of a command, which it may change, as a command of its own. some reports that a rule about any program may be about it.
func (s *search) tail(argv []Word, some bool) {
	if argv[0].Dynamic && argv[0].Text == "" {
		return // no rule is about a program of which nothing is known
	}
	name := programs.Unversioned(argv[:1])[0].Text
	mayBeClassed := s.classes && programs.Classed(name)
	if s.left--; !some && !mayBeClassed && !s.policy.isAbout(baseName(name)) {
		return
	}
	if s.left <= 0 {
		argv = argv[:min(len(argv), scanWindow)]
	}
	argv[0].Text = name
	if len(argv) > 1 && argv[1].Text == "--" { // start-stop-daemon -x rm -- -r a
		argv = slices.Delete(slices.Clone(argv), 1, 2)
	}
	if mayBeClassed {
		s.inner(argv)
	}
	s.run(argv, nil, 0, false, false)
}

// matched takes note of a rule that matches a command. A built-in denial is a question where only words that are not known yet
// make the rule match.
func (s *search) matched(cp *commandPattern, argv []Word, dirs []string) {
	action := cp.rule.Action
	if action == Deny && cp.rule.file == "" && !cp.certain(argv, dirs) {
		s.consider(cp.rule, Ask, true, argv)
		return // what comes may match it with certainty
	}
	s.note(cp.rule, action, argv)
}

func (s *search) note(r *rule, action Action, argv []Word) {
	s.noted[r] = true
	s.denied = s.denied || action == Deny
	s.consider(r, action, true, argv)
}

// certain reports whether a rule that blocks a command would block it whatever the words are that are known only at run time.
func (cp *commandPattern) certain(argv []Word, dirs []string) bool {
	if !slices.ContainsFunc(argv, func(w Word) bool { return w.Dynamic }) {
		return true
	}
	known := slices.Clone(argv)
	for i, w := range known {
		if w.Dynamic {
			known[i] = Word{Text: w.Text + "\x00"} // a word that no pattern names
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
		for _, i := range found {
			if cp := list.list[i]; !s.noted[cp.rule] && cp.blocks(c, argv, dirs) {
				s.matched(&cp, argv, dirs)
			}
		}
	}
	if c.Or != nil && c.Or.Base != c.Base {
		s.command(c.Or, argv, dirs)
	}
}

func wordsIn(text string) []Word {
	return programs.Words(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n;|&()`'\"{}[],!=", r) }))
}

// The classes of commands of which a rule may be, as their specifications say.
const (
	classDestructive = "destructive" // loses work that cannot be had again
	classOutgoing    = "outgoing"    // sends something off this machine
)

// classed reports the asking and denying rules about the classes of a command.
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
			if of.why(r) != "" && !excepted(r, e.Argv) {
				s.note(r, r.Action, e.Argv)
			}
		}
	}
}

// inner reports the rules about the classes of a command that may run in another one.
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

// classes are those of one command, with what it does that makes it one of each.
type classes map[string]string

// why says what the command does that makes the rule match it; "" when that does not.
func (c classes) why(r *rule) string {
	for _, name := range r.Classes {
		if c[name] != "" {
			return c[name]
		}
	}
	return ""
}

// classesOf returns the classes of a command, without what those lose that it starts. A word of which nothing is known is taken
// for an operand: that it could be a flag makes no class. What may be any number of words is two.
func classesOf(e Effect) classes {
	argv := make([]Word, 0, len(e.Argv))
	for i, w := range e.Argv {
		if i > 0 && w.Dynamic && w.Text == "" {
			w.Text, w.Dynamic = "…", false
		}
		if w.Many {
			w.Many = false
			argv = append(argv, w)
			w = Word{Text: "…"}
		}
		argv = append(argv, w)
	}
	of := make(classes)
	if e.Absent { // it does nothing
		return of
	}
	c := programs.Parse(argv)
	if c.Loses != "" && !e.Kept {
		of[classDestructive] = "it " + c.Loses
	}
	if c.Leaves {
		of[classOutgoing] = "it sends something off this machine"
	}
	return of
}
