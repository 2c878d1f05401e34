package sandbox

import (
	"os"
	"slices"

	"github.com/toold/toold/internal/paths"
)

// A Limit restricts a call further at the request of its client, for example to the sandbox configured in an agent.
// The zero value restricts nothing.
type Limit struct {
	Mode     string   // widest mode, see AtMost; "" = any
	Write    []string // canonical directories, the only writable ones; nil = no limit
	ReadOnly []string // canonical paths that the call cannot change, move or remove; missing ones are skipped
	Hide     []string // canonical paths that the call cannot read; missing ones are skipped
	Offline  bool     // no network
}

// IsZero reports whether l limits nothing.
func (l Limit) IsZero() bool {
	lists := l.Write != nil || len(l.ReadOnly)+len(l.Hide) > 0
	return !lists && l.Mode == "" && !l.Offline
}

// Keeps returns the entry of ReadOnly that contains a canonical path; "" if none does.
func (l Limit) Keeps(canonical string) string {
	for _, kept := range l.ReadOnly {
		if paths.Within(canonical, kept) {
			return kept
		}
	}
	return ""
}

// AtMost returns the profile with at most the named mode. "" changes nothing; an unknown name counts as the
// strictest.
func (p Profile) AtMost(name string) Profile {
	if name == "" {
		return p
	}
	mode, err := ParseMode(name)
	if err != nil {
		mode = ReadOnly
	}
	p.Mode = min(p.Mode, mode)
	return p
}

// Within returns the profile restricted by a limit.
func (p Profile) Within(l Limit) Profile {
	p = p.AtMost(l.Mode)
	if p.Mode == FullAccess && !l.IsZero() {
		p.Mode = WorkspaceWrite // the strictest mode that can enforce it
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

func (p Profile) writingIn(dirs []string) Profile {
	var both []string
	for _, mine := range p.Roots() {
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

// keeping returns the protected paths, with those in list that are writable.
func (p Profile) keeping(list []string) []string {
	protect := slices.Clip(p.Protect)
	writable := p.Roots()
	for _, path := range list {
		inside := slices.ContainsFunc(writable, func(root string) bool { return paths.Within(path, root) })
		if _, err := os.Lstat(path); err == nil && inside && !slices.Contains(protect, path) {
			protect = append(protect, path)
		}
	}
	return protect
}
