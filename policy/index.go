package policy

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/shell/programs"
)

// indexed is a list of rules, by texts of which a matching effect contains one. A lookup returns every rule that
// matches and some that do not, but far fewer than the thousands that there may be.
type indexed[T any] struct {
	list []T
	any  []int32            // items that need no text
	by   map[string][]int32 // indexes in list, by text
}

func (x *indexed[T]) add(item T, keys ...string) {
	if x.by == nil {
		x.by = make(map[string][]int32)
	}
	at := int32(len(x.list))
	x.list = append(x.list, item)
	if len(keys) == 0 {
		x.any = append(x.any, at)
	}
	for _, key := range keys {
		x.by[key] = append(x.by[key], at)
	}
}

// choose returns the found items and those that need no text, in the order of list.
func (x *indexed[T]) choose(found []int32) []T {
	found = append(found, x.any...)
	slices.Sort(found)
	found = slices.Compact(found)
	out := make([]T, len(found))
	for i, at := range found {
		out[i] = x.list[at]
	}
	return out
}

// ruleSet has the rules of some files. It is immutable after compilation.
type ruleSet struct {
	byName         map[string]*commandRules // by name of the program
	anyName        commandRules
	blocks, allows pathRules
	net            indexed[*rule] // by host, without a leading *
	classes        []*rule        // ask and deny rules
	env            map[string]bool
	envLike        []string
}

type commandRules struct{ blocks, allows indexed[*commandPattern] }

func newRuleSet() *ruleSet {
	return &ruleSet{byName: make(map[string]*commandRules), env: make(map[string]bool)}
}

func (s *ruleSet) variables(names []string) {
	for _, name := range names {
		s.env[name] = true
		if strings.Contains(name, "*") {
			s.envLike = append(s.envLike, name)
		}
	}
}

// command indexes a pattern by the names of its program: as written for allow rules, otherwise the canonical ones.
func (s *ruleSet) command(cp *commandPattern) {
	allows := cp.rule.Action == Allow
	var names []string
	if allows {
		names = slices.Clone(cp.tokens[0])
	} else {
		for _, m := range cp.all {
			names = append(names, cmp.Or(m.program, m.command.Base))
		}
	}
	for i, name := range names {
		names[i] = baseName(name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		list := s.byName[name]
		switch {
		case strings.Contains(name, "*"):
			list = &s.anyName
		case list == nil:
			list = new(commandRules)
			s.byName[name] = list
		}
		if allows {
			list.allows.add(cp, cp.allowKeys()...)
		} else {
			list.blocks.add(cp, cp.blockKeys()...)
		}
	}
}

func isOpen(token string) bool {
	return strings.Contains(token, "*") || strings.HasPrefix(token, "-") || slices.Contains([]string{"<int>", "<ref>"}, token)
}

// allowKeys returns the last literal words, of which a matching command has one. nil means that there are none.
func (p *pattern) allowKeys() []string {
	for _, token := range slices.Backward(p.tokens[1:]) {
		if !slices.ContainsFunc(token, isOpen) {
			return token
		}
	}
	return nil
}

// blockKeys returns the last literal words of all meanings. A matching command has one of them, unless some of its
// words are unknown. nil means that a meaning has none.
func (p *pattern) blockKeys() (keys []string) {
	for _, m := range p.all {
		at := len(m.words) - 1
		for at >= 0 && isOpen(m.words[at].Text) {
			at--
		}
		if at < 0 {
			return nil
		}
		keys = append(keys, m.words[at].Text)
	}
	return keys
}

// named returns the rules for a program and those for any program.
func (p *Policy) named(name string) (lists []*commandRules) {
	for _, s := range p.sets {
		if list := s.byName[name]; list != nil {
			lists = append(lists, list)
		}
		lists = append(lists, &s.anyName)
	}
	return lists
}

// isAbout reports whether an ask or deny rule names a program.
func (p *Policy) isAbout(program programs.Program) bool {
	return program.Is(func(name string) bool {
		return slices.ContainsFunc(p.sets, func(s *ruleSet) bool {
			list := s.byName[name]
			return list != nil && len(list.blocks.list) > 0
		})
	})
}

// mayBeNamed reports whether an ask or deny rule for any program may match a suffix of the words.
func (s *search) mayBeNamed(words []Word) bool {
	this := tail{&words[len(words)-1], len(words)}
	within := func(longer tail) bool { return longer.last == this.last && longer.n >= this.n }
	if slices.ContainsFunc(s.unnamed, within) {
		return false
	}
	mayBe := slices.ContainsFunc(s.policy.sets, func(set *ruleSet) bool {
		blocks := &set.anyName.blocks
		mayBe := func(w Word) bool { return w.Dynamic || blocks.by[w.Text] != nil }
		return len(blocks.any) > 0 || len(blocks.by) > 0 && slices.ContainsFunc(words, mayBe)
	})
	if !mayBe && len(words) > 8*scanWindow {
		s.unnamed = append(s.unnamed, this)
	}
	return mayBe
}

func (l *commandRules) allowing(argv []Word) []*commandPattern {
	var found []int32
	for _, w := range argv {
		if !w.Dynamic {
			found = append(found, l.allows.by[w.Text]...)
		}
	}
	return l.allows.choose(found)
}

// blocking returns the ask and deny patterns that may match a command. A word with an unknown end may become any key
// with that beginning. The caller must not change the result.
func (l *commandRules) blocking(c *programs.Command) []*commandPattern {
	var found []int32
	for ; c != nil; c = c.Or {
		for _, w := range c.WithStarted() {
			switch {
			case w.Many:
				return l.blocks.list
			case !w.Dynamic:
				found = append(found, l.blocks.by[w.Text]...)
				continue
			}
			for key, at := range l.blocks.by {
				if strings.HasPrefix(key, w.Text) {
					found = append(found, at...)
				}
			}
		}
	}
	return l.blocks.choose(found)
}

func (s *ruleSet) network(r *rule) {
	keys := make([]string, len(r.Hosts))
	for i, host := range r.Hosts {
		keys[i] = strings.TrimPrefix(host, "*")
	}
	s.net.add(r, keys...)
}

// about returns the rules that may match a host.
func (p *Policy) about(host string) (rules []*rule) {
	for _, s := range p.sets {
		found := slices.Clone(s.net.by[host])
		for i := range len(host) {
			if host[i] == '.' {
				found = append(found, s.net.by[host[i:]]...)
			}
		}
		rules = append(rules, s.net.choose(found)...)
	}
	return rules
}

type pathRules struct {
	indexed[*rule]
	fold    bool
	longest int                // maximum length of a prefix
	below   map[string][]int32 // rules that may select something below a tree: by each parent of the prefix
}

func (l *pathRules) add(r *rule) {
	if l.below == nil {
		l.below = make(map[string][]int32)
	}
	at := int32(len(l.list))
	var keys []string
	for i := range r.globs {
		g := &r.globs[i]
		keys = append(keys, g.key())
		for parent := g.prefix; ; parent = parent[:strings.LastIndexByte(parent, '/')] {
			l.below[parent] = append(l.below[parent], at)
			if parent == "" {
				break
			}
		}
		// A pattern selects something below a tree if components follow one that is not **.
		deep := len(g.rest) > 2 && g.rest[0] == "**"
		switch {
		case deep && !hasMeta(g.rest[1]):
			keys = append(keys, g.rest[1])
		case deep, len(g.rest) > 1 && g.rest[0] != "**":
			keys = append(keys, g.prefix)
		}
		l.longest = max(l.longest, len(g.prefix))
	}
	l.indexed.add(r, keys...)
}

// key returns a text that every matching path contains: a component, an extension such as ".pem", or the prefix.
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

// find returns the rules that may match a path in one of its forms or, with tree, something below it.
func (l *pathRules) find(tree bool, forms ...string) []*rule {
	var found []int32
	try := func(key string) { found = append(found, l.by[key]...) }
	for _, path := range forms {
		if l.fold {
			path = strings.ToLower(path)
		}
		path = strings.TrimRight(path, "/")
		try(filepath.Ext(path))
		for begin := path; begin != ""; begin = begin[:max(strings.LastIndexByte(begin, '/'), 0)] {
			if len(begin) <= l.longest { // looking up longer prefixes would take quadratic time
				try(begin)
			}
			try(baseName(begin))
		}
		try("")
		if tree {
			found = append(found, l.below[path]...)
		}
	}
	return l.choose(found)
}
