package policy

import (
	"slices"
	"strings"
)

// pathList holds path rules in their order. They are filed under the literal
// beginnings of their patterns, and there under what else a path must hold.
type pathList struct {
	rules  []*rule
	fold   bool
	under  map[string]*places
	begins []string // of under, in order
	most   int      // letters of the longest
}

// places are the rules that have a pattern with one literal beginning.
type places struct {
	all   []int32
	rest  []int32            // tried for every path below the beginning
	trees []int32            // tried for every tree below it
	parts map[string][]int32 // by a component that the path must have
	ends  map[string][]int32 // by the end of the path's name, such as ".pem"
}

func (l *pathList) add(r *rule) { l.rules = append(l.rules, r) }

// sort files each rule under its patterns.
func (l *pathList) sort() {
	count := make(rarity)
	for _, r := range l.rules {
		for i := range r.globs {
			count.add(needs(r.globs[i].rest))
		}
	}
	l.under = make(map[string]*places)
	for at, r := range l.rules {
		for i := range r.globs {
			g := &r.globs[i]
			p := l.under[g.prefix]
			if p == nil {
				p = &places{parts: make(map[string][]int32), ends: make(map[string][]int32)}
				l.under[g.prefix] = p
				l.begins = append(l.begins, g.prefix)
			}
			p.add(int32(at), g.rest, count)
		}
	}
	slices.Sort(l.begins)
	for _, begin := range l.begins {
		l.most = max(l.most, len(begin))
	}
}

// needs returns the components that a path must have for a pattern's to match.
func needs(parts []string) (out [][]string) {
	for _, part := range parts {
		if !hasMeta(part) {
			out = append(out, []string{part})
		}
	}
	return out
}

// add files a pattern's components after the literal beginning. A tree below the
// beginning is reached when only some of them match: it may lack the rare one.
func (p *places) add(at int32, parts []string, count rarity) {
	p.all = append(p.all, at)
	if len(parts) == 0 {
		p.rest = append(p.rest, at)
		return
	}
	last := parts[len(parts)-1]
	key := count.rarest(needs(parts))
	switch {
	case key != nil:
		p.parts[key[0]] = append(p.parts[key[0]], at)
	case nameEnd(last) != "":
		p.ends[nameEnd(last)] = append(p.ends[nameEnd(last)], at)
	default:
		p.rest = append(p.rest, at)
		return
	}
	deep := parts[0] == "**" && len(parts) > 1
	switch {
	case len(parts) == 1 || deep && (len(parts) == 2 || key != nil && parts[1] == key[0]):
	case deep && !hasMeta(parts[1]): // no tree is reached whose path lacks it
		p.parts[parts[1]] = append(p.parts[parts[1]], at)
	default:
		p.trees = append(p.trees, at)
	}
}

// nameEnd returns the last dot of the names that a component matches, and what
// follows; "" = none that is known.
func nameEnd(part string) string {
	end := part[strings.LastIndexAny(part, `*?[]{}\`)+1:]
	if dot := strings.LastIndexByte(end, '.'); dot >= 0 {
		return end[dot:]
	}
	return ""
}

// find returns the rules that may be about a path, or about something below it
// when it means a tree.
func (l *pathList) find(path string, tree bool) []int32 {
	if len(l.rules) == 0 {
		return nil
	}
	if l.fold {
		path = strings.ToLower(path)
	}
	path = strings.TrimRight(path, "/")
	var found []int32
	begin := path
	if len(path) > l.most {
		begin = parent(path[:l.most+1]) // a longer one is not there
	}
	for ; ; begin = parent(begin) {
		if p := l.under[begin]; p != nil {
			found = p.find(found, path[len(begin):], tree)
		}
		if begin == "" {
			break
		}
	}
	if tree {
		i, _ := slices.BinarySearch(l.begins, path+"/")
		for ; i < len(l.begins) && strings.HasPrefix(l.begins[i], path+"/"); i++ {
			found = append(found, l.under[l.begins[i]].all...)
		}
	}
	return inOrder(found)
}

// parent is what is before the last slash of a path.
func parent(path string) string { return path[:max(strings.LastIndexByte(path, '/'), 0)] }

// find appends the rules that may be about a path below the beginning.
func (p *places) find(found []int32, path string, tree bool) []int32 {
	if path == "" && tree {
		return append(found, p.all...)
	}
	found = append(found, p.rest...)
	if tree {
		found = append(found, p.trees...)
	}
	if len(p.parts) > 0 {
		for part := range strings.SplitSeq(path, "/") {
			found = append(found, p.parts[part]...)
		}
	}
	name := path[strings.LastIndexByte(path, '/')+1:]
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 && len(p.ends) > 0 {
		found = append(found, p.ends[name[dot:]]...)
	}
	return found
}
