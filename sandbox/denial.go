package sandbox

import (
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/toold/toold/internal/paths"
)

// The kinds of a Denial.
const (
	DeniedFile      = "file"      // Target is a path that is outside of what may be changed, or hidden
	DeniedSocket    = "socket"    // a local socket of the machine
	DeniedHost      = "host"      // a connection to a host
	DeniedName      = "name"      // a question for the name of a host
	DeniedProtected = "protected" // a path that other programs run or obey
	DeniedSyscall   = "syscall"   // a system call
	DeniedLimit     = "limit"     // one of Limits
)

// Denial is one thing that the sandbox kept from a call. It is an error where a
// path was refused (see Profile.CanRead).
type Denial struct {
	Kind    string // one of the constants
	Op      string // what was tried, as a verb: "read", "write", "connect to"
	Target  string // path, host, name of a system call or of a limit
	Exact   bool   // toold refused it itself; false = inferred from what a program printed, and confirmed by the profile
	Setting string // the key of the configuration, or the rule of the policy, that governs it
	Hint    string // why, and what to do next; for people and models
}

// Error says what was refused, why, and what to do next.
func (d *Denial) Error() string { return "cannot " + d.Op + " " + d.name() + ": " + d.Hint }

// name is the target in a sentence. It is quoted if it could read as toold's own words.
func (d *Denial) name() string {
	named := d.Kind == DeniedFile || d.Kind == DeniedProtected || d.Kind == DeniedSocket
	if named && strings.ContainsFunc(d.Target, func(r rune) bool { return unicode.IsSpace(r) || r == '"' }) {
		return strconv.Quote(d.Target)
	}
	return d.Target
}

// Notice says it in a sentence, for a result. What came from a command is in it as
// it came.
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

// Denied returns the denial of a path that a command could not read, or not change; nil if the
// profile allows it. The path comes from the command: the result, which is not Exact, says
// nothing of what is there.
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
	// Where a link leads that the command cannot see is none of its business.
	for _, step := range append(links, canonical) {
		d.Setting, d.Hint = p.invisible(step)
		switch {
		case d.Setting == settingRead && change: // it is sandbox.write that would let it
			d.Setting, d.Hint = "", ""
		case d.Setting == settingHide || d.Setting == settingRead:
			return d
		case d.Setting != "":
			return nil // a private folder, which is the call's
		}
	}
	if change && p.keeps(d, canonical) {
		return d
	}
	return nil
}

// keeps tells why a path that can be seen cannot be changed.
func (p Profile) keeps(d *Denial, canonical string) bool {
	for _, kept := range p.Protect {
		if paths.Within(canonical, kept) || paths.Within(kept, canonical) {
			d.Kind, d.Op, d.Setting = DeniedProtected, "change", settingProtect
			d.Hint = "other programs run or obey what stands there (sandbox.protect); use write_file, which asks the user, or ask the user"
			return true
		}
	}
	if p.Mode == WorkspaceWrite && p.Caches.hold(canonical) {
		return false
	}
	var refused *Denial
	if !errors.As(p.CanWrite(canonical), &refused) {
		return false
	}
	d.Setting, d.Hint = refused.Setting, refused.Hint
	return true
}

// The settings that several parts name.
const (
	settingHide    = "sandbox.hide"
	settingRead    = "sandbox.read"
	settingProtect = "sandbox.protect"
)
