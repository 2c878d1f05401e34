package sandbox

import (
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/toold/toold/internal/paths"
)

// Values of Denial.Kind.
const (
	DeniedFile      = "file"      // Target is a path that is hidden or outside of what may be changed
	DeniedSocket    = "socket"    // a local socket of the machine
	DeniedHost      = "host"      // a connection to a host
	DeniedName      = "name"      // a lookup of a host name
	DeniedProtected = "protected" // a path that other programs run or obey
	DeniedSyscall   = "syscall"   // a system call
	DeniedLimit     = "limit"     // one of Limits
)

// Denial is one thing that the sandbox refused to a call. It is the error for refused paths (see
// Profile.CanRead).
type Denial struct {
	Kind    string // one of the Denied constants
	Op      string // what was tried, as a verb: "read", "write", "connect to"
	Target  string // path, host, name of a system call or of a limit
	Exact   bool   // toold itself refused it; false = inferred from a program's output, and confirmed by the profile
	Setting string // the configuration key or policy rule that governs it
	Hint    string // why, and what to do next; for people and models
}

// Error says what was refused, why, and what to do next.
func (d *Denial) Error() string { return "cannot " + d.Op + " " + d.name() + ": " + d.Hint }

// name returns the target, quoted if it could read as toold's own text.
func (d *Denial) name() string {
	named := d.Kind == DeniedFile || d.Kind == DeniedProtected || d.Kind == DeniedSocket
	if named && strings.ContainsFunc(d.Target, func(r rune) bool { return unicode.IsSpace(r) || r == '"' }) {
		return strconv.Quote(d.Target)
	}
	return d.Target
}

// Notice returns the denial as a sentence for a result. Text from a command is not escaped.
func (d *Denial) Notice() string {
	from := "Refused by the sandbox"
	if !d.Exact {
		from = "Probably refused by the sandbox (inferred from the output)"
	}
	text := from + ": " + d.Error()
	if !strings.Contains(d.Hint, d.Setting) {
		text += " (" + d.Setting + ")"
	}
	return strings.TrimSuffix(text, ".") + "."
}

// Denied returns the denial of a path that a command could not read or change; nil if the profile
// allows it. The path comes from the command: the result, which is not Exact, does not depend on
// what exists there.
func (p Profile) Denied(path string, change bool) *Denial {
	if p.Mode == FullAccess {
		return nil
	}
	canonical, links, err := paths.ResolveLinks(path)
	if err != nil {
		return nil
	}
	d := &Denial{Kind: DeniedFile, Op: "read", Target: filepath.Clean(path)}
	if change {
		d.Op = "write"
	}
	// The target of a link that the command cannot see is not reported.
	for _, step := range append(links, canonical) {
		d.Setting, d.Hint = p.invisible(step)
		switch {
		case d.Setting == settingRead && change: // sandbox.write would allow it
			d.Setting, d.Hint = "", ""
		case d.Setting == settingHide || d.Setting == settingRead:
			return d
		case d.Setting != "":
			return nil // a private directory of the call
		}
	}
	if change && p.keeps(d, canonical) {
		return d
	}
	return nil
}

// keeps fills in why a visible path cannot be changed.
func (p Profile) keeps(d *Denial, canonical string) bool {
	for _, kept := range p.Protect {
		if paths.Within(canonical, kept) || paths.Within(kept, canonical) {
			d.Kind, d.Op, d.Setting = DeniedProtected, "change", settingProtect
			d.Hint = "other programs run or obey what is there (sandbox.protect); use write_file, which asks the user, or ask the user"
			return true
		}
	}
	if p.Mode == WorkspaceWrite && p.Caches.Contain(canonical) {
		return false
	}
	var refused *Denial
	if !errors.As(p.CanWrite(canonical), &refused) {
		return false
	}
	d.Setting, d.Hint = refused.Setting, refused.Hint
	return true
}

// Settings that several files name.
const (
	settingHide    = "sandbox.hide"
	settingRead    = "sandbox.read"
	settingProtect = "sandbox.protect"
)
