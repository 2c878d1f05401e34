package sandbox

import (
	"os"
	"slices"

	"github.com/toold/toold/internal/paths"
)

// A Limit is what a client lets a call of its own do at most, such as the sandbox that an
// agent's own configuration asks for. The zero value limits nothing.
type Limit struct {
	Mode     string   // no wider mode, see AtMost; "" = any
	Write    []string // canonical directories; nothing is writable outside of them. Nil = no limit
	ReadOnly []string // canonical paths that the call cannot change, move or remove; missing ones are skipped
	Hide     []string // canonical paths that the call cannot read; missing ones are skipped
	Offline  bool     // no connections to other machines
}

// IsZero reports whether l limits nothing.
func (l Limit) IsZero() bool {
	lists := l.Write != nil || len(l.ReadOnly)+len(l.Hide) > 0
	return !lists && l.Mode == "" && !l.Offline
}

// Keeps returns which of ReadOnly holds a canonical path; "" when none does.
func (l Limit) Keeps(canonical string) string {
	for _, kept := range l.ReadOnly {
		if paths.Within(canonical, kept) {
			return kept
		}
	}
	return ""
}

// Within is the profile with no more rights than a limit leaves.
func (p Profile) Within(l Limit) Profile {
	p = p.AtMost(l.Mode)
	if p.Mode == FullAccess && !l.IsZero() {
		p.Mode = WorkspaceWrite // in which it can be kept
	}
	if l.Offline {
		p.Network, p.Ports, p.Sockets = false, nil, nil
	}
	if len(l.Hide) > 0 {
		p.Hide = slices.Concat(p.Hide, l.Hide)
	}
	if l.Write != nil && p.Mode != ReadOnly {
		p = p.writingIn(l.Write)
	}
	p.Protect = p.keeping(l.ReadOnly)
	return p
}

// writingIn is the profile with nothing writable outside of some directories.
func (p Profile) writingIn(dirs []string) Profile {
	var both []string
	for _, mine := range p.roots() {
		for _, theirs := range dirs {
			switch {
			case paths.Within(mine, theirs):
				both = append(both, mine)
			case paths.Within(theirs, mine):
				both = append(both, theirs)
			}
		}
	}
	if len(both) == 0 {
		p.Mode = ReadOnly
		return p
	}
	slices.Sort(both)
	both = slices.Compact(both)
	if i := slices.Index(both, p.Workspace); i > 0 {
		both[0], both[i] = both[i], both[0]
	}
	p.Workspace, p.Write = both[0], both[1:]
	return p
}

// keeping is what the profile protects, with those of list that are writable.
func (p Profile) keeping(list []string) []string {
	protect := slices.Clip(p.Protect)
	writable := p.roots()
	for _, path := range list {
		inside := slices.ContainsFunc(writable, func(root string) bool { return paths.Within(path, root) })
		if _, err := os.Lstat(path); err == nil && inside && !slices.Contains(protect, path) {
			protect = append(protect, path)
		}
	}
	return protect
}
