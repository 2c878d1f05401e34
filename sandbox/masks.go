package sandbox

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/toold/toold/internal/paths"
)

// A MaskSet is what policy rules hide from one call. It is immutable. Every tier except TierC enforces it.
type MaskSet struct {
	// Hidden cannot be opened: each is covered by a read-only file or directory with mode 000.
	Hidden []Mask
	// Fixed can be read, but not changed, moved or removed.
	Fixed []Mask
}

// Mask is an existing file or directory in a MaskSet.
type Mask struct {
	Path   string // canonical
	Is     string // identity of the file when the set was created
	Rule   string // id of the rule
	Reason string // reason of the rule
	Ask    bool   // approval may lift the mask for a call
}

// With returns the union of both sets.
func (s *MaskSet) With(other *MaskSet) *MaskSet {
	switch {
	case s == nil:
		return other
	case other == nil:
		return s
	}
	return &MaskSet{Hidden: slices.Concat(s.Hidden, other.Hidden), Fixed: slices.Concat(s.Fixed, other.Fixed)}
}

// Masking reports whether a sandbox of the profile enforces masks: on Linux, in every tier except TierC.
func (p Profile) Masking() bool {
	return runtime.GOOS == "linux" && p.Mode != FullAccess && p.Tier != TierC
}

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

// Fixed returns the existing paths that a call cannot change, move or remove.
func (p Profile) Fixed() []string {
	all := slices.Concat(p.Protect, pathsOf(p.masks().Fixed))
	slices.Sort(all)
	return slices.Compact(all)
}

// Masked returns the paths that masks hide from a call.
func (p Profile) Masked() []string { return pathsOf(p.masks().Hidden) }

// masked returns the mask that denies reading or changing a canonical path, or nil.
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

// CanOpen returns CanRead or CanWrite, with the masks of the profile applied.
func (p Profile) CanOpen(canonical string, change bool) error {
	check := p.CanRead
	if change {
		check = p.CanWrite
	}
	if err := check(canonical); err != nil {
		return err
	}
	if m := p.masked(canonical, change); m != nil {
		return m.Denial(canonical, change, false)
	}
	return nil
}

// Denial returns the denial for the mask, with the name by which the call used the file. kept: it is
// protected as well, so that no approved command changes it either.
func (m Mask) Denial(name string, change, kept bool) *Denial {
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
	if kept {
		d.Kind = DeniedProtected
	}
	switch builtin := strings.HasPrefix(m.Rule, "builtin:"); {
	case kept && (m.Ask || builtin):
		d.Hint += "; " + InsteadOf(m.Path)
	case !m.Ask:
		d.Hint += "; do without it, or ask the user to change the rule"
	case change:
		d.Hint += "; name the file in the command that changes it, so that the user is asked"
	default:
		d.Hint += fmt.Sprintf("; if you need it, have a command read it by this name, or a call with \"escalate\": {\"read\": [%q]}: the user is asked", name)
	}
	return d
}
