package policy

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/shell/programs"
)

// Of thousands of rules, few match one effect. They are indexed by a text that a matching effect contains, and tried in
// their order.

// ruleSet contains the rules of some files.
type ruleSet struct {
	byName         map[string]*commandList // by the program's name
	anyName        commandList
	blocks, allows pathList
	net            hostList
	classes        []*rule // ask and deny rules
	env            map[string]bool
	envLike        []string
}

func newRuleSet() *ruleSet {
	return &ruleSet{byName: make(map[string]*commandList), env: make(map[string]bool)}
}

func (s *ruleSet) variables(names []string) {
	for _, name := range names {
		s.env[name] = true
		if strings.Contains(name, "*") {
			s.envLike = append(s.envLike, name)
		}
	}
}

// command indexes a pattern by its program's names: as written for allow rules, else canonical.
func (s *ruleSet) command(cp commandPattern) {
	var names []string
	for _, name := range cp.tokens[0] {
		if cp.rule.Action == Allow {
			names = append(names, baseName(name))
		}
	}
	for _, m := range cp.all {
		if cp.rule.Action != Allow {
			names = append(names, baseName(cmp.Or(m.program, m.command.Base)))
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
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

func (s *ruleSet) sort() {
	for _, list := range s.byName {
		list.blocks.sort()
	}
	s.anyName.blocks.sort()
	s.blocks.begins.sort()
	s.allows.begins.sort()
}

func (p *Policy) named(name string) (lists []*commandList) {
	for _, s := range p.sets {
		if list := s.byName[name]; list != nil {
			lists = append(lists, list)
		}
	}
	for _, s := range p.sets {
		lists = append(lists, &s.anyName)
	}
	return lists
}

func (p *Policy) isAbout(name string) bool {
	base := programs.Canonical(name)
	return slices.ContainsFunc(p.sets, func(s *ruleSet) bool {
		list := s.byName[base]
		return list != nil && len(list.blocks.any)+len(list.blocks.by) > 0
	})
}

// mayBeNamed reports whether an ask or deny rule for any program may match a suffix of these words.
func (p *Policy) mayBeNamed(words []Word) bool {
	return slices.ContainsFunc(p.sets, func(s *ruleSet) bool {
		blocks := &s.anyName.blocks
		mayBe := func(w Word) bool { return w.Dynamic || blocks.by[w.Text] != nil }
		return len(blocks.any) > 0 || len(blocks.by) > 0 && slices.ContainsFunc(words, mayBe)
	})
}

type commandList struct {
	list           []commandPattern
	blocks, allows filed
}

func (l *commandList) add(cp commandPattern) {
	list, keys := &l.blocks, cp.keys()
	if cp.rule.Action == Allow {
		list = &l.allows
	}
	list.add(int32(len(l.list)), keys)
	l.list = append(l.list, cp)
}

// keys returns the last literal words of a pattern: a matching command has one of them. nil: there are none.
func (cp *commandPattern) keys() (keys []string) {
	open := func(t string) bool {
		return strings.Contains(t, "*") || strings.HasPrefix(t, "-") || t == "<int>" || t == "<ref>"
	}
	if cp.rule.Action == Allow {
		for _, token := range slices.Backward(cp.tokens[1:]) {
			if !slices.ContainsFunc(token, open) {
				return token
			}
		}
		return nil
	}
	for _, m := range cp.all {
		at := len(m.words) - 1
		for at >= 0 && open(m.words[at].Text) {
			at--
		}
		if at < 0 {
			return nil
		}
		keys = append(keys, m.words[at].Text)
	}
	return keys
}

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

func (f *filed) appendWord(found []int32, w Word) []int32 {
	switch {
	case w.Many:
		return f.appendBeginning(found, "")
	case w.Dynamic:
		return f.appendBeginning(found, w.Text)
	case len(w.Text) > f.longest: // a lookup would take longer
		return found
	}
	return append(found, f.by[w.Text]...)
}

func inOrder(list []int32) []int32 {
	slices.Sort(list)
	return slices.Compact(list)
}

type filed struct {
	any  []int32 // need none
	by   map[string][]int32
	keys []string // of by, sorted

	longest int
}

func (f *filed) add(at int32, keys []string) {
	if keys == nil {
		f.any = append(f.any, at)
		return
	}
	if f.by == nil {
		f.by = make(map[string][]int32)
	}
	for _, key := range keys {
		f.by[key], f.longest = append(f.by[key], at), max(f.longest, len(key))
	}
}

func (f *filed) sort() {
	f.keys = f.keys[:0]
	for key := range f.by {
		f.keys = append(f.keys, key)
	}
	slices.Sort(f.keys)
}

func (f *filed) appendBeginning(found []int32, text string) []int32 {
	i, _ := slices.BinarySearch(f.keys, text)
	for ; i < len(f.keys) && strings.HasPrefix(f.keys[i], text); i++ {
		found = append(found, f.by[f.keys[i]]...)
	}
	return found
}

type hostList struct {
	rules []*rule
	names filed // whole, or after *
}

func (l *hostList) add(r *rule) {
	for _, h := range r.Hosts {
		l.names.add(int32(len(l.rules)), []string{strings.TrimPrefix(h, "*")})
	}
	l.rules = append(l.rules, r)
}

func (l *hostList) find(host string) []int32 {
	found := slices.Concat(l.names.any, l.names.by[host])
	for i := range len(host) {
		if host[i] == '.' {
			found = append(found, l.names.by[host[i:]]...)
		}
	}
	return inOrder(found)
}

type pathList struct {
	rules  []*rule
	fold   bool
	paths  filed // by key
	trees  filed // by a text of the path, for trees
	begins filed // by literal prefix
}

func (l *pathList) add(r *rule) {
	at := int32(len(l.rules))
	l.rules = append(l.rules, r)
	for i := range r.globs {
		g := &r.globs[i]
		l.paths.add(at, []string{g.key()})
		l.begins.add(at, []string{g.prefix})
		// It selects something below a tree with components after one that is not **.
		deep := len(g.rest) > 2 && g.rest[0] == "**"
		switch {
		case deep && !hasMeta(g.rest[1]):
			l.trees.add(at, []string{g.rest[1]})
		case deep, len(g.rest) > 1 && g.rest[0] != "**":
			l.trees.add(at, []string{g.prefix})
		}
	}
}

// key returns what every matching path contains: the last literal component, the end of the name, such as ".pem", or
// the prefix.
func (g *glob) key() string {
	for _, part := range slices.Backward(g.rest) {
		if !hasMeta(part) {
			return part
		}
	}
	if len(g.rest) > 0 {
		last := g.rest[len(g.rest)-1]
		if end := filepath.Ext(last[strings.LastIndexAny(last, `*?[]{}\`)+1:]); end != "" {
			return end
		}
	}
	return g.prefix
}

func baseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

func (l *pathList) find(path string, tree bool) []int32 {
	if l.fold {
		path = strings.ToLower(path)
	}
	path = strings.TrimRight(path, "/")
	found := slices.Clip(l.paths.any)
	try := func(key string) {
		if found = append(found, l.paths.by[key]...); tree {
			found = append(found, l.trees.by[key]...)
		}
	}
	try(filepath.Ext(path))
	for begin := path; begin != ""; begin = begin[:max(strings.LastIndexByte(begin, '/'), 0)] {
		if len(begin) <= l.paths.longest || len(begin) <= l.trees.longest { // looking up the others takes long
			try(begin)
		}
		try(baseName(begin))
	}
	try("")
	if tree {
		found = l.begins.appendBeginning(append(found, l.begins.by[path]...), path+"/")
	}
	return inOrder(found)
}
