package policy

import (
	"iter"
	"slices"
	"strings"
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
	env            map[string]bool // variables that may be set
	envLike        []string        // patterns of such
	needed         map[string]bool // words under which asking and denying command rules are filed
	anyAlways      bool            // some for any program need no word, or one that equivalents brings
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

// command files a pattern under the names of its program.
func (s *ruleSet) command(cp commandPattern) {
	for _, name := range cp.tokens[0] {
		if strings.Contains(name, "*") {
			s.anyName.add(cp)
			continue
		}
		name = baseName(name)
		if s.byName[name] == nil {
			s.byName[name] = &commandList{}
		}
		s.byName[name].add(cp)
	}
}

// path files a path rule. fold tells that its patterns fold case, as those of
// all rules do with which it stands.
func (s *ruleSet) path(r *rule, fold bool) {
	list := &s.blocks
	if r.Action == Allow {
		list = &s.allows
	}
	list.fold = fold
	list.add(r)
}

// sort files the rules: all are there.
func (s *ruleSet) sort() {
	s.needed = make(map[string]bool)
	for _, list := range s.byName {
		list.sort()
		list.blocks.addKeys(s.needed)
	}
	s.anyName.sort()
	s.anyName.blocks.addKeys(s.needed)
	s.anyAlways = len(s.anyName.blocks.any) > 0 || s.anyName.blocks.hasSome(broughtWords)
	s.blocks.sort()
	s.allows.sort()
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

// needs reports whether an asking or denying command rule is filed under a word.
func (p *Policy) needs(word string) bool {
	for _, s := range p.sets {
		if s.needed[word] {
			return true
		}
	}
	return false
}

// mayBlock reports whether an asking or denying command rule may be about a program.
// named tells that a word of its command is one under which rules are filed: without
// one, those for any program are not about it, but for some.
func (p *Policy) mayBlock(name string, named bool) bool {
	for _, s := range p.sets {
		if list := s.byName[name]; list != nil && list.asks() || s.anyAlways || named && s.anyName.asks() {
			return true
		}
	}
	return false
}

// current returns what stands in the place of a rule: the rule itself, unless a
// change is being tried; nil where it is taken away.
func (p *Policy) current(r *rule) *rule {
	for r != nil {
		by, changed := p.changed[r]
		if !changed {
			break
		}
		r = by
	}
	return r
}

// commandList holds command patterns in their order.
type commandList struct {
	list           []commandPattern
	blocks, allows filed // asking and denying patterns; allowing ones
}

// asks reports whether some pattern asks or denies.
func (l *commandList) asks() bool { return len(l.blocks.any)+len(l.blocks.by) > 0 }

func (l *commandList) add(cp commandPattern) { l.list = append(l.list, cp) }

// sort files each pattern under the rarest of the words that it needs.
func (l *commandList) sort() {
	count := make(rarity)
	needs := make([][][]string, len(l.list))
	for i := range l.list {
		needs[i] = l.list[i].needs()
		count.add(needs[i])
	}
	for i := range l.list {
		keys := count.rarest(needs[i])
		if l.list[i].rule.Action == Allow {
			l.allows.add(int32(i), keys)
		} else {
			l.blocks.add(int32(i), keys)
		}
	}
	l.blocks.sort()
}

// needs returns sets of words, of each of which a command must have one for the
// pattern to match. For asking and denying rules flags are none: they have many
// spellings.
func (p *commandPattern) needs() (out [][]string) {
	for _, t := range p.tokens[1:] {
		if plainToken(t) && (p.rule.Action == Allow || !strings.HasPrefix(t[0], "-")) {
			out = append(out, t)
		}
	}
	return out
}

// plainToken reports whether all alternatives of a token are literal.
func plainToken(token []string) bool {
	return !slices.ContainsFunc(token, func(t string) bool {
		return strings.Contains(t, "*") || t == "<int>" || t == "<ref>"
	})
}

// rarity counts how many rules need a text.
type rarity map[string]int

func (r rarity) add(needs [][]string) {
	for _, keys := range needs {
		for _, key := range keys {
			r[key]++
		}
	}
}

// rarest returns the set of texts that the fewest rules need; nil when there is
// none.
func (r rarity) rarest(needs [][]string) (best []string) {
	least := 0
	for _, keys := range needs {
		n := 0
		for _, key := range keys {
			n += r[key]
		}
		if best == nil || n < least {
			best, least = keys, n
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
func (l *commandList) blocking(c *command) []int32 {
	if len(l.blocks.by) == 0 {
		return l.blocks.any
	}
	found, unknown := slices.Clip(l.blocks.any), false
	for _, i := range c.needed {
		if i -= c.before; i >= len(c.argv) {
			break
		} else if i == 0 || unknown && c.argv[i].Dynamic {
			continue // all that need anything are found already
		}
		found = l.blocks.appendWord(found, c.argv[i], false)
		unknown = unknown || c.argv[i] == Word{Dynamic: true}
	}
	if c.other {
		for r := range readings(c.name, c.argv[1:]) {
			for i, w := range r.head {
				found = l.blocks.appendWord(found, w, i == 0 && c.name == "npm")
			}
			if len(r.head) == 0 && len(r.rest) > 0 && c.name == "npm" {
				found = l.blocks.appendWord(found, r.rest[0], true)
			}
		}
	}
	if len(found) == len(l.blocks.any) {
		return found
	}
	return inOrder(found)
}

// appendWord appends those that need a word. abbreviates tells that it may be the
// beginning of a subcommand.
func (f *filed) appendWord(found []int32, w Word, abbreviates bool) []int32 {
	if w.Dynamic || abbreviates && len(w.Text) > 1 {
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

// hasSome reports whether a rule is filed under one of some texts.
func (f *filed) hasSome(texts string) bool {
	for text := range strings.FieldsSeq(texts) {
		if f.by[text] != nil {
			return true
		}
	}
	return false
}

// addKeys adds the texts under which rules are filed to a set.
func (f *filed) addKeys(keys map[string]bool) {
	for key := range f.by {
		keys[key] = true
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
	at := int32(len(l.rules))
	l.rules = append(l.rules, r)
	keys := make([]string, len(r.Hosts))
	for i, h := range r.Hosts {
		keys[i] = strings.TrimPrefix(h, "*")
	}
	l.names.add(at, keys)
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
