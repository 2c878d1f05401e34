package policy

import "strings"

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
	s := search{policy: p, consider: consider, noted: make(map[*rule]bool), left: maxScan}
	needed := p.neededIn(e.Argv)
	s.command(e.Argv, needed, 0, e.Dirs)
	for _, argv := range equivalents(e.Argv) {
		s.command(argv, p.neededIn(argv), 0, e.Dirs)
	}
	if len(e.Argv) < 2 || !runsArguments(e.Argv) {
		return
	}
	for i := 1; i < len(e.Argv) && !s.denied; i++ {
		needed = from(needed, i)
		s.tail(e.Argv[i:], needed, i)
		if text := e.Argv[i].Text; strings.ContainsAny(text, " \t\n;|&") {
			inner := wordsIn(text)
			needed := p.neededIn(inner)
			for j := 0; j < len(inner) && !s.denied; j++ {
				needed = from(needed, j)
				s.tail(inner[j:], needed, j)
			}
		}
	}
}

// Trying every tail of a command takes time that grows with the square of its
// length. Beyond maxScan words, only the first scanWindow words of a tail are
// looked at: no command that people write is longer.
const (
	maxScan    = 1 << 14
	scanWindow = 12
)

// neededIn returns where the words stand that some rule needs, as far as it is
// filed under its words: all others are of no use in finding rules.
func (p *Policy) neededIn(argv []Word) (needed []int) {
	for i, w := range argv {
		if w.Dynamic || p.needs(w.Text) {
			needed = append(needed, i)
		}
	}
	return needed
}

// from leaves out the places before one.
func from(needed []int, at int) []int {
	for len(needed) > 0 && needed[0] < at {
		needed = needed[1:]
	}
	return needed
}

// tail tries the end of a command as a command of its own. needed are the places of
// words that rules need in the command that it begins at.
func (s *search) tail(argv []Word, needed []int, at int) {
	if s.left <= 0 {
		argv = argv[:min(len(argv), scanWindow)]
	}
	argv = withoutVersion(argv)
	s.command(argv, needed, at, nil)
	for _, other := range equivalents(argv[:min(len(argv), 4*scanWindow)]) {
		s.left -= len(other)
		s.command(other, s.policy.neededIn(other), 0, nil)
	}
}

// command tries one command.
func (s *search) command(argv []Word, needed []int, at int, dirs []string) {
	if len(argv) == 0 {
		return
	}
	c := command{argv: argv, name: baseName(argv[0].Text)}
	s.left--
	for list := range s.policy.named(c.name) {
		found := list.blocking(&c, needed, at)
		s.left -= min(len(needed), len(argv)) + len(argv)*len(found)
		for _, i := range found {
			cp := list.list[i]
			if cp.rule = s.policy.current(cp.rule); cp.rule != nil && !s.noted[cp.rule] && cp.blocks(&c, dirs) {
				s.noted[cp.rule] = true
				s.denied = s.denied || cp.rule.Action == Deny
				s.consider(cp.rule, argv)
			}
		}
	}
	if c.taken != nil {
		s.left -= len(argv)
	}
}
