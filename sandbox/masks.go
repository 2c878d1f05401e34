package sandbox

import (
	"fmt"
	"slices"

	"github.com/toold/toold/internal/paths"
)

// A MaskSet is what rules keep from one call in the workspace and in what it may write. It
// never changes; it is carried out in every tier with a view of its own (not TierC).
type MaskSet struct {
	// Hidden cannot be opened: over each is a read-only file or directory of mode 000.
	Hidden []Mask
	// Fixed can be read, and not changed, moved or removed.
	Fixed []Mask
}

// Mask is one existing file or directory of a MaskSet.
type Mask struct {
	Path   string // canonical
	Is     string // which file it was when the set was made
	Rule   string // the id of the rule
	Reason string // why, as the rule says it
	Ask    bool   // a person may take the mask away for a call
}

// With returns the masks of both sets; nil = none.
func (s *MaskSet) With(other *MaskSet) *MaskSet {
	switch {
	case s == nil:
		return other
	case other == nil:
		return s
	}
	return &MaskSet{Hidden: slices.Concat(s.Hidden, other.Hidden), Fixed: slices.Concat(s.Fixed, other.Fixed)}
}

// Masking reports whether a sandbox of the profile carries out masks: on Linux, in every tier
// with a view of its own.
func (p Profile) Masking() bool {
	return masking && p.Mode != FullAccess && p.Tier != TierC
}

// masks are those that a sandbox of the profile carries out.
func (p Profile) masks() MaskSet {
	if p.Masks == nil || !p.Masking() {
		return MaskSet{}
	}
	return *p.Masks
}

func pathsOf(masks []Mask) []string {
	list := make([]string, len(masks))
	for i, m := range masks {
		list[i] = m.Path
	}
	return list
}

// fixed are the existing paths that a call cannot change, move or remove.
func (p Profile) fixed() []string {
	all := slices.Concat(p.Protect, pathsOf(p.masks().Fixed))
	slices.Sort(all)
	return slices.Compact(all)
}

// masked is the mask that denies reading, or changing, a canonical path; nil without one.
func (p Profile) masked(canonical string, change bool) *Mask {
	set := p.masks()
	for i, m := range set.Hidden {
		if paths.Within(canonical, m.Path) {
			return &set.Hidden[i]
		}
	}
	for i, m := range set.Fixed {
		if change && paths.Within(canonical, m.Path) {
			return &set.Fixed[i]
		}
	}
	return nil
}

// canOpen is CanRead or CanWrite of a call with the masks of the profile.
func (p Profile) canOpen(canonical string, change bool) error {
	check := p.CanRead
	if change {
		check = p.CanWrite
	}
	if err := check(canonical); err != nil {
		return err
	}
	if m := p.masked(canonical, change); m != nil {
		return m.Denial(canonical, change)
	}
	return nil
}

// Denial says what the mask keeps from a call, by the name under which the call met it.
func (m Mask) Denial(name string, change bool) *Denial {
	d := &Denial{Kind: DeniedFile, Op: "read", Target: name, Setting: m.Rule}
	if change {
		d.Op = "change"
	}
	d.Hint = "rule " + m.Rule + " denies it"
	if m.Ask {
		d.Hint = "rule " + m.Rule + " asks first"
	}
	if m.Reason != "" {
		d.Hint += " (" + m.Reason + ")"
	}
	switch {
	case !m.Ask:
		d.Hint += "; do without it, or ask the user to change the rule"
	case change:
		d.Hint += "; name the file in the command that changes it, so that the user is asked"
	default:
		d.Hint += fmt.Sprintf("; if you need it, send the call again with \"escalate\": {\"read\": [%q]}, which asks the user", name)
	}
	return d
}
