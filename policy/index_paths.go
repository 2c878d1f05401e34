package policy

import (
	"slices"
	"strings"
)

// pathList holds path rules in their order, filed for find.
type pathList struct {
	rules  []*rule
	fold   bool
	paths  filed // by a component that a path must have, the end of its name, or its beginning
	trees  filed // of patterns that may single out something below a tree: by what its path must have
	begins filed // by the literal beginnings of the patterns
}

// add files a rule under each of its patterns.
func (l *pathList) add(r *rule) {
	at := int32(len(l.rules))
	l.rules = append(l.rules, r)
	for i := range r.globs {
		g := &r.globs[i]
		l.paths.add(at, []string{g.key()})
		l.begins.add(at, []string{g.prefix})
		// What singles out something below a tree has components after one that is no **.
		deep := len(g.rest) > 2 && g.rest[0] == "**"
		switch {
		case deep && !hasMeta(g.rest[1]):
			l.trees.add(at, []string{g.rest[1]})
		case deep, len(g.rest) > 1 && g.rest[0] != "**":
			l.trees.add(at, []string{g.prefix})
		}
	}
}

// key is what every path that the pattern matches has: the last literal component after the
// beginning, else the end of the name, such as ".pem", else the beginning.
func (g *glob) key() string {
	for _, part := range slices.Backward(g.rest) {
		if !hasMeta(part) {
			return part
		}
	}
	if len(g.rest) > 0 {
		last := g.rest[len(g.rest)-1]
		if end := nameEnd(last[strings.LastIndexAny(last, `*?[]{}\`)+1:]); end != "" {
			return end
		}
	}
	return g.prefix
}

// nameEnd returns the last dot of a name and what follows, "" where there is none.
func nameEnd(name string) string {
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		return name[dot:]
	}
	return ""
}

// find returns the rules that may be about a path, or about something below it
// when it means a tree.
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
	try(nameEnd(baseName(path)))
	for begin := path; begin != ""; begin = begin[:max(strings.LastIndexByte(begin, '/'), 0)] {
		try(begin)
		try(baseName(begin))
	}
	try("")
	if tree {
		found = l.begins.appendBeginning(append(found, l.begins.by[path]...), path+"/")
	}
	return inOrder(found)
}
