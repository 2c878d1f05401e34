package policy

import (
	"slices"
	"strings"
)

// A program that is not known here may run what is in its words. Each end of them
// is therefore tried as a command of its own, for the rules that ask and deny.

// search looks for the asking and denying command rules that could mean a command.
type search struct {
	policy   *Policy
	consider func(*rule, []Word)
	noted    map[*rule]bool // the same rule says nothing new of another end of the command
	denied   bool           // nothing is stricter
	left     int            // words that may still be looked at in whole ends
}

// blockingCommands reports every asking or denying command rule that could mean
// this command, with the words that it means: those of the command, or of an end
// of it that may be run.
func (p *Policy) blockingCommands(e Effect, consider func(*rule, []Word)) {
	if len(e.Argv) == 0 {
		return
	}
	s := search{policy: p, consider: consider, left: maxScan}
	c := p.command(e.Argv)
	s.command(c, e.Dirs)
	for _, argv := range equivalents(c, p.wanted(&c)) {
		s.command(p.command(argv), e.Dirs)
	}
	if len(e.Argv) < 2 || !runsArguments(e.Argv) {
		return
	}
	for c.next(); len(c.argv) > 0 && !s.denied; c.next() {
		s.tail(c)
		if text := c.argv[0].Text; strings.ContainsAny(text, " \t\n;|&") {
			for inner := p.command(wordsIn(text)); len(inner.argv) > 0 && !s.denied; inner.next() {
				s.tail(inner)
			}
		}
	}
}

// Trying every tail of a command takes time that grows with the square of its
// length. Beyond maxScan words, only the first scanWindow words of a tail are
// looked at: no command that people write is longer.
const (
	maxScan    = 1 << 14
	scanWindow = 8
)

// command is a command to which many patterns are held.
type command struct {
	argv   []Word
	name   string  // of its program
	needed []int   // the places of the words that rules need, counted from before
	before int     // words before it in the command that it is an end of
	other  bool    // its operands may be taken for others than are written
	taken  []sense // see readings
}

// command looks for the words that some rule needs, as far as it is filed under its
// words: all others are of no use in finding rules.
func (p *Policy) command(argv []Word) command {
	c := command{argv: argv}
	for i, w := range argv {
		name := unversionedName(w.Text)
		if w.Dynamic || p.needs(w.Text) || len(name) < len(w.Text) && p.needs(name) {
			c.needed = append(c.needed, i)
		}
	}
	if len(argv) > 0 {
		c.name = baseName(argv[0].Text)
	}
	return c
}

// wanted tells of which programs rules may be that ask or deny, as far as these have
// the words of c.
func (p *Policy) wanted(c *command) func(program string) bool {
	named := len(c.needed) > 0 && c.needed[0] < c.before+len(c.argv)
	return func(program string) bool { return p.mayBlock(program, named) }
}

// next drops the first word.
func (c *command) next() {
	c.argv, c.taken = c.argv[1:], nil
	if c.before++; len(c.needed) > 0 && c.needed[0] < c.before {
		c.needed = c.needed[1:]
	}
	if len(c.argv) > 0 {
		c.name = baseName(c.argv[0].Text)
	}
}

// tail tries the end of a command as a command of its own.
func (s *search) tail(c command) {
	if c.argv[0] == (Word{Dynamic: true}) {
		return // no rule is about a program of which nothing is known
	}
	if s.left <= 0 {
		c.argv = c.argv[:min(len(c.argv), scanWindow)]
	}
	c.name = withoutVersion(c.name)
	s.command(c, nil)
	c.argv = c.argv[:min(len(c.argv), 6*scanWindow)]
	for _, other := range equivalents(c, s.policy.wanted(&c)) {
		s.left -= len(other)
		s.command(s.policy.command(other), nil)
	}
}

// command tries one command.
func (s *search) command(c command, dirs []string) {
	s.left--
	if len(c.argv) == 0 {
		return
	}
	c.other = hasOtherNames(c.name)
	for list := range s.policy.named(c.name) {
		found := list.blocking(&c)
		s.left -= min(len(c.needed), len(c.argv)) + len(c.argv)*len(found)
		if len(found) > 0 && c.name != baseName(c.argv[0].Text) {
			c.argv = slices.Concat([]Word{{c.name, c.argv[0].Dynamic}}, c.argv[1:])
		}
		for _, i := range found {
			cp := list.list[i]
			if cp.rule = s.policy.current(cp.rule); cp.rule != nil && !s.noted[cp.rule] && cp.blocks(&c, dirs) {
				if s.noted == nil {
					s.noted = make(map[*rule]bool)
				}
				s.noted[cp.rule] = true
				s.denied = s.denied || cp.rule.Action == Deny
				s.consider(cp.rule, c.argv)
			}
		}
	}
	if c.taken != nil || c.other {
		s.left -= len(c.argv)
	}
}
