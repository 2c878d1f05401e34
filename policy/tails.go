package policy

import (
	"slices"
	"strings"

	"github.com/toold/toold/shell/programs"
)

// A program that is not known here may run what is in its words. Each end of them
// is therefore tried as a command of its own, for the rules that ask and deny.

// search looks for the asking and denying command rules that could mean a command.
type search struct {
	policy   *Policy
	consider found
	noted    map[*rule]bool // the same rule says nothing new of another end of the command
	denied   bool           // nothing is stricter
	classes  bool           // rules about classes may be about what it runs, too
	left     int            // words that may still be looked at in whole ends
}

// blockingCommands reports every asking or denying command rule that could mean
// this command, with the words that it means: those of the command, of one that it
// starts, or of an end of it that may be run.
func (p *Policy) blockingCommands(e Effect, consider found) {
	if len(e.Argv) == 0 {
		return
	}
	s := search{policy: p, consider: consider, noted: make(map[*rule]bool), left: maxScan}
	if s.classes = slices.ContainsFunc(p.sets, func(s *ruleSet) bool { return len(s.classes) > 0 }); s.classes {
		s.classed(e)
		s.classes = !e.Follow && !e.Absent
	}
	c := programs.Spell(e.Argv)
	s.command(&c, e.Argv, e.Dirs)
	s.started(&c, 0, true)
	if c.Carries {
		s.ends(e.Argv[1:])
	}
}

// Trying every tail of a command takes time that grows with the square of its
// length. Beyond maxScan words, only the first scanWindow words of a tail are
// looked at: no command that people write is longer.
const (
	maxScan    = 1 << 14
	scanWindow = 8
	maxStarts  = 8 // commands that start commands
)

// started tries the commands that a command starts. Where all is followed, a script has
// effects of its own, and is not searched for what looks like a command.
func (s *search) started(c *programs.Command, depth int, followed bool) {
	followed = followed && c.Followed() && c.Opaque == ""
	for _, run := range c.Runs {
		if run.Script.Text != "" && (run.Language == "text" || !followed) {
			s.text(run.Script.Text)
		}
		if len(run.Argv) == 0 || depth > maxStarts || s.left <= 0 {
			continue
		}
		inner := programs.Spell(run.Argv)
		s.inner(run.Argv)
		s.command(&inner, run.Argv, nil)
		s.started(&inner, depth+1, followed)
		if inner.Carries {
			s.ends(run.Argv[1:])
		}
	}
}

// ends tries each end of some words, and what is in them that looks like a script.
func (s *search) ends(words []Word) {
	some := s.policy.mayBeNamed(words)
	for ; len(words) > 0 && !s.denied; words = words[1:] {
		s.tail(words, some)
		s.text(words[0].Text)
	}
}

// text tries what could be commands in a script.
func (s *search) text(text string) {
	if !strings.ContainsAny(text, " \t\n;|&") {
		return
	}
	words := wordsIn(text)
	some := s.policy.mayBeNamed(words)
	for ; len(words) > 0 && !s.denied; words = words[1:] {
		s.tail(words, some)
	}
}

// tail tries the end of a command as a command of its own. some reports that a rule
// about any program may be about it.
func (s *search) tail(argv []Word, some bool) {
	if argv[0].Dynamic && argv[0].Text == "" {
		return // no rule is about a program of which nothing is known
	}
	name := withoutVersion(argv[0].Text)
	mayBeClassed := s.classes && programs.Classed(name)
	if s.left--; !some && !mayBeClassed && !s.policy.isAbout(baseName(name)) {
		return
	}
	if s.left <= 0 {
		argv = argv[:min(len(argv), scanWindow)]
	}
	if name != argv[0].Text {
		argv = append([]Word{{Text: name, Dynamic: argv[0].Dynamic}}, argv[1:]...)
	}
	if len(argv) > 1 && argv[1].Text == "--" { // start-stop-daemon -x rm -- -r a
		argv = slices.Delete(slices.Clone(argv), 1, 2)
	}
	c := programs.Spell(argv)
	if mayBeClassed {
		s.inner(argv)
	}
	s.command(&c, argv, nil)
	s.started(&c, 0, false)
}

// withoutVersion takes the version away from a program that another runs: npx npm@10.
func withoutVersion(program string) string {
	if at := strings.LastIndexByte(program, '@'); at > 0 && !strings.Contains(program[at:], "/") {
		return program[:at]
	}
	return program
}

// matched takes note of a rule that matches a command. A built-in denial is a question
// where only words that are not known yet make the rule match.
func (s *search) matched(cp *commandPattern, argv []Word, dirs []string) {
	action := cp.rule.Action
	if action == Deny && cp.rule.file == "" && !cp.certain(argv, dirs) {
		s.consider(cp.rule, Ask, true, argv)
		return // what comes may match it with certainty
	}
	s.note(cp.rule, action, argv)
}

// note reports a rule, once.
func (s *search) note(r *rule, action Action, argv []Word) {
	s.noted[r] = true
	s.denied = s.denied || action == Deny
	s.consider(r, action, true, argv)
}

// certain reports whether a rule that blocks a command would block it whatever the words
// are that are known only at run time.
func (cp *commandPattern) certain(argv []Word, dirs []string) bool {
	if !anyDynamic(argv) {
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

// command tries one command.
func (s *search) command(c *programs.Command, argv []Word, dirs []string) {
	s.left -= len(argv) + 6*len(c.Flags)
	for list := range s.policy.named(c.Base) {
		found := list.blocking(c)
		s.left -= len(argv) * len(found)
		for _, i := range found {
			if cp := list.list[i]; !s.noted[cp.rule] && cp.blocks(c, argv, dirs) {
				s.matched(&cp, argv, dirs)
			}
		}
	}
}

// wordsIn splits text that may be a script into what could be its words.
func wordsIn(text string) []Word {
	fields := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n;|&()`'\"{}", r) })
	words := make([]Word, len(fields))
	for i, f := range fields {
		words[i].Text = f
	}
	return words
}
