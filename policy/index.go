package policy

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/toold/toold/shell/programs"
)

// A policy may have thousands of rules, and few of them can be about one effect.
// They are filed under a text that an effect must hold for them to match: what is
// found there is tried as if there were no index, in the order of the rules.

// ruleSet holds the rules of some files. It does not change once it is sorted.
type ruleSet struct {
	byName         map[string]*commandList // by the program's name
	anyName        commandList             // patterns that begin with a wildcard
	blocks, allows pathList                // asking and denying path rules; allowing ones
	net            hostList
	classes        []*rule         // asking and denying rules about classes of commands
	env            map[string]bool // variables that may be set
	envLike        []string        // patterns of such
}

func newRuleSet() *ruleSet {
	return &ruleSet{byName: make(map[string]*commandList), env: make(map[string]bool)}
}

// variables adds variables that may be set, by names and patterns.
func (s *ruleSet) variables(names []string) {
	for _, name := range names {
		s.env[name] = true
		if strings.Contains(name, "*") {
			s.envLike = append(s.envLike, name)
		}
	}
}

// command files a pattern under the names of its program: as they are written for
// rules that allow, by the canonical ones for others.
func (s *ruleSet) command(cp commandPattern) {
	names := make(map[string]bool)
	for _, name := range cp.tokens[0] {
		names[baseName(name)] = true
	}
	if cp.rule.Action != Allow {
		clear(names)
		for i := range cp.all {
			names[cp.all[i].fileName()] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if strings.Contains(name, "*") {
			s.anyName.add(cp)
			continue
		}
		if s.byName[name] == nil {
			s.byName[name] = &commandList{}
		}
		s.byName[name].add(cp)
	}
}

// fileName is the name under which an alternative is filed.
func (m *meaning) fileName() string {
	if m.program != "" {
		return baseName(m.program)
	}
	return m.command.Base
}

// sort files the rules: all are there.
func (s *ruleSet) sort() {
	for _, list := range s.byName {
		list.blocks.sort()
	}
	s.anyName.blocks.sort()
	s.blocks.begins.sort()
	s.allows.begins.sort()
}

// named yields the lists in which a pattern about a program must stand, in the
// order in which they are tried.
func (p *Policy) named(name string) iter.Seq[*commandList] {
	return func(yield func(*commandList) bool) {
		for _, s := range p.sets {
			if list := s.byName[name]; list != nil && !yield(list) {
				return
			}
		}
		for _, s := range p.sets {
			if len(s.anyName.list) > 0 && !yield(&s.anyName) {
				return
			}
		}
	}
}

// isAbout reports whether an asking or denying command rule names a program.
func (p *Policy) isAbout(name string) bool {
	base := programs.Canonical(name)
	return slices.ContainsFunc(p.sets, func(s *ruleSet) bool {
		list := s.byName[base]
		return list != nil && list.asks()
	})
}

// mayBeNamed reports whether an asking or denying rule about any program may be
// about some end of these words.
func (p *Policy) mayBeNamed(words []Word) bool {
	return slices.ContainsFunc(p.sets, func(s *ruleSet) bool {
		if len(s.anyName.blocks.any) > 0 {
			return true
		}
		return len(s.anyName.blocks.by) > 0 && slices.ContainsFunc(words, func(w Word) bool { return w.Dynamic || s.anyName.blocks.by[w.Text] != nil })
	})
}

// commandList holds command patterns in their order.
type commandList struct {
	list           []commandPattern
	blocks, allows filed // asking and denying patterns; allowing ones
}

// asks reports whether some pattern asks or denies.
func (l *commandList) asks() bool { return len(l.blocks.any)+len(l.blocks.by) > 0 }

// add files a pattern under words that it needs.
func (l *commandList) add(cp commandPattern) {
	at := int32(len(l.list))
	l.list = append(l.list, cp)
	if cp.rule.Action == Allow {
		l.allows.add(at, lastPlain(slices.Values(cp.tokens[1:])))
	} else {
		l.blocks.add(at, lastPlain(cp.operands()))
	}
}

// operands yields what the operands of a command may be for the pattern of an asking or
// denying rule to match, by their canonical names.
func (p *pattern) operands() iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for at := 0; ; at++ {
			var words []string
			for i := range p.all {
				if at >= len(p.all[i].words) {
					return
				}
				words = append(words, p.all[i].words[at].Text)
			}
			if !yield(words) {
				return
			}
		}
	}
}

// lastPlain returns the last token, of which a command must have an alternative, that is
// literal and no flag, since few rules have the last words in common; nil when there is none.
func lastPlain(tokens iter.Seq[[]string]) (best []string) {
	for token := range tokens {
		open := slices.ContainsFunc(token, func(t string) bool {
			return strings.Contains(t, "*") || strings.HasPrefix(t, "-") || t == "<int>" || t == "<ref>"
		})
		if !open {
			best = token
		}
	}
	return best
}

// allowing returns the allowing patterns that may match a command.
func (l *commandList) allowing(argv []Word) []int32 {
	if len(l.allows.by) == 0 {
		return l.allows.any
	}
	found := slices.Clone(l.allows.any)
	for _, w := range argv {
		if !w.Dynamic {
			found = append(found, l.allows.by[w.Text]...)
		}
	}
	return inOrder(found)
}

// blocking returns the asking and denying patterns that may match a command.
func (l *commandList) blocking(c *programs.Command) []int32 {
	if len(l.blocks.by) == 0 {
		return l.blocks.any
	}
	found := slices.Clip(l.blocks.any)
	for ; c != nil; c = c.Or {
		for _, w := range c.Words {
			found = l.blocks.appendWord(found, w)
		}
		for _, run := range c.Runs {
			for _, w := range run.Argv {
				found = l.blocks.appendWord(found, w)
			}
		}
	}
	if len(found) == len(l.blocks.any) {
		return found
	}
	return inOrder(found)
}

// appendWord appends those that need a word.
func (f *filed) appendWord(found []int32, w Word) []int32 {
	switch {
	case w.Many:
		return f.appendBeginning(found, "")
	case w.Dynamic:
		return f.appendBeginning(found, w.Text)
	}
	return append(found, f.by[w.Text]...)
}

// inOrder sorts indexes, each once.
func inOrder(list []int32) []int32 {
	slices.Sort(list)
	return slices.Compact(list)
}

// filed are indexes of rules under the texts that they need.
type filed struct {
	any  []int32 // those that need none
	by   map[string][]int32
	keys []string // of by, sorted
}

// add files a rule under each of its texts.
func (f *filed) add(at int32, keys []string) {
	if keys == nil {
		f.any = append(f.any, at)
		return
	}
	if f.by == nil {
		f.by = make(map[string][]int32)
	}
	for _, key := range keys {
		f.by[key] = append(f.by[key], at)
	}
}

// sort makes appendBeginning work.
func (f *filed) sort() {
	f.keys = f.keys[:0]
	for key := range f.by {
		f.keys = append(f.keys, key)
	}
	slices.Sort(f.keys)
}

// appendBeginning appends those under all texts that begin with one.
func (f *filed) appendBeginning(found []int32, text string) []int32 {
	i, _ := slices.BinarySearch(f.keys, text)
	for ; i < len(f.keys) && strings.HasPrefix(f.keys[i], text); i++ {
		found = append(found, f.by[f.keys[i]]...)
	}
	return found
}

// hostList holds rules about hosts in their order.
type hostList struct {
	rules []*rule
	names filed // whole names, and what comes after * in the others
}

// add files a rule under its hosts.
func (l *hostList) add(r *rule) {
	for _, h := range r.Hosts {
		l.names.add(int32(len(l.rules)), []string{strings.TrimPrefix(h, "*")})
	}
	l.rules = append(l.rules, r)
}

// find returns the rules that may be about a host.
func (l *hostList) find(host string) []int32 {
	found := slices.Concat(l.names.any, l.names.by[host])
	for i := range len(host) {
		if host[i] == '.' {
			found = append(found, l.names.by[host[i:]]...)
		}
	}
	return inOrder(found)
}
