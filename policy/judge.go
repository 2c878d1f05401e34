package policy

import (
	"slices"
	"strings"

	"github.com/toold/toold/shell/programs"
)

func (cp *commandPattern) blocks(c *programs.Command, argv []Word, dirs []string) bool {
	r := cp.rule
	if r.Action == Allow || !cp.means(c, argv) || !r.mayBeIn(dirs) {
		return false
	}
	return !excepted(r, argv)
}

func (r *rule) mayBeIn(dirs []string) bool {
	return len(r.dirs) == 0 || len(dirs) == 0 || slices.ContainsFunc(dirs, func(dir string) bool { return matchesGlob(r.dirs, dir) })
}

func (p *Policy) judgeExec(e Effect) verdict {
	if len(e.Argv) == 0 || e.Argv[0].Dynamic {
		return p.unanalysable()
	}
	for _, cp := range p.allowing(e) {
		if cp.allows(e) {
			return verdict{action: Allow, rule: cp.rule}
		}
	}
	c := programs.Parse(e.Argv)
	v := verdict{action: p.defaults.Bash, id: "defaults.bash"}
	switch {
	case c.Covers == programs.CoversRead && p.readOnly, c.Covers == programs.CoversWrite && p.workspace:
		return verdict{action: Allow, id: "presets"}
	case c.Code:
		v = p.unanalysable()
	}
	if c.Anything { // nothing is known about what runs
		return v
	}
	return p.raised(v)
}

func (p *Policy) allowing(e Effect) (list []*commandPattern) {
	if e.Kind != Exec || len(e.Argv) == 0 || e.Argv[0].Dynamic {
		return nil
	}
	for _, rules := range p.named(baseName(e.Argv[0].Text)) {
		list = append(list, rules.allowing(e.Argv)...)
	}
	return list
}

func (r *rule) isIn(e Effect) bool {
	outside := func(dir string) bool { return !matchesGlob(r.dirs, dir) }
	return len(r.dirs) == 0 || len(e.Dirs) > 0 && !slices.ContainsFunc(e.Dirs, outside)
}

func matchesGlob(globs []glob, path string) bool {
	return slices.ContainsFunc(globs, func(g glob) bool { return g.match(path) })
}

func (r *rule) concerns(kind Kind) bool { return len(r.Ops) == 0 || slices.Contains(r.Ops, kind) }

// blocksPath reports whether an ask or deny rule applies to a form of the path or, for a tree, to something below it.
//
// whole is false if the rule decides only a part of the effect: it matches something below the path of a recursive
// read, or may match files in a write of which only the end of the name is known.
func (r *rule) blocksPath(e Effect) (action Action, whole, ok bool) {
	if r.Action == Allow || !r.concerns(e.Kind) {
		return Allow, false, false
	}
	for i, form := range [...]string{e.Path, e.Canonical} {
		if form == "" || i > 0 && form == e.Path {
			continue
		}
		if r.selects(form, e) && !matchesGlob(r.except, form) {
			return r.Action, true, true
		}
		if e.Tree && r.reaches(form, e) && !r.excepts(form) {
			if e.Kind == Write {
				return r.against(e), !r.coincides(form, e.Part), true
			}
			// A search would read denied files. Ask rules do not count, or every search would need approval.
			if r.Action == Deny {
				action, ok = Ask, true
			}
		}
	}
	return action, false, ok
}

// selects reports whether a pattern matches path. A pattern for the path alone does not protect its attributes.
func (r *rule) selects(path string, e Effect) bool {
	attributes := e.Part == PartAttributes && e.Kind == Read && !e.Tree
	return slices.ContainsFunc(r.globs, func(g glob) bool { return g.match(path) && (!attributes || g.covers(path)) })
}

// against returns the action for something below a tree. A built-in rule only asks about files from elsewhere.
func (r *rule) against(e Effect) Action {
	if r.file == "" && e.Part == programs.PartBrought {
		return Ask
	}
	return r.Action
}

func (r *rule) reaches(path string, e Effect) bool {
	if r.file == "" && e.Kind == Write && strings.Trim(e.Part, programs.PartSome) != "" {
		return false // reformatting a file does not change its effect
	}
	return slices.ContainsFunc(r.globs, func(g glob) bool { return g.reaches(path) && g.holds(e.Part) })
}

// coincides reports whether only patterns with an open end select files below path with this ending.
func (r *rule) coincides(path, end string) bool {
	closed := func(g glob) bool { return g.reaches(path) && g.holds(end) && !g.holds("/") }
	return strings.HasPrefix(end, programs.PartSome) || end != "" && !slices.ContainsFunc(r.globs, closed)
}

func (r *rule) excepts(path string) bool {
	return slices.ContainsFunc(r.except, func(g glob) bool { return g.covers(path) })
}

func (r *rule) allowsPath(e Effect) bool {
	if !r.concerns(e.Kind) || matchesGlob(r.except, e.Canonical) || matchesGlob(r.except, e.Path) {
		return false
	}
	excepted := func(g glob) bool { return g.reaches(e.Canonical) && g.holds(e.Part) }
	if e.Tree && e.Kind == Write && slices.ContainsFunc(r.except, excepted) {
		return false
	}
	if e.Tree {
		return slices.ContainsFunc(r.globs, func(g glob) bool { return g.covers(e.Canonical) })
	}
	return matchesGlob(r.globs, e.Canonical)
}

// matchesHost matches a host. If forDeny is set, unknown values match.
func (r *rule) matchesHost(e Effect, forDeny bool) bool {
	if e.Host == "" || !hostIn(r.Hosts, e.Host) || hostIn(r.Except, e.Host) {
		return false
	}
	unknown := forDeny && e.Port == 0
	port := unknown || len(r.Ports) == 0 || slices.Contains(r.Ports, e.Port)
	return port && listed(r.Schemes, e.Scheme, forDeny) && listed(r.Methods, e.Method, forDeny)
}

func hostIn(hosts []string, host string) bool {
	return slices.ContainsFunc(hosts, func(h string) bool {
		suffix, ok := strings.CutPrefix(h, "*")
		return ok && strings.HasSuffix(host, suffix) || h == host
	})
}

// listed reports whether a list contains a value, in any case of ASCII, or is empty.
func listed(list []string, value string, forDeny bool) bool {
	unknown := forDeny && value == ""
	same := func(v string) bool { return len(v) == len(value) && strings.EqualFold(v, value) }
	return unknown || len(list) == 0 || slices.ContainsFunc(list, same)
}
