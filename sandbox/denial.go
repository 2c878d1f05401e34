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
	DeniedFile      = "file"      // Target is hidden, or outside of the writable directories
	DeniedSocket    = "socket"    // a local socket of the machine
	DeniedHost      = "host"      // a connection to a host
	DeniedName      = "name"      // a lookup of a host name
	DeniedProtected = "protected" // a path that other programs run or obey
	DeniedSyscall   = "syscall"   // a system call
	DeniedLimit     = "limit"     // one of Limits
)

// Denial is something that the sandbox refused to a call. It is the error for refused paths; see Profile.CanRead.
type Denial struct {
	Kind    string // one of the Denied constants
	Op      string // what was attempted, as a verb: "read", "write", "connect to"
	Target  string // path, host, or name of a system call or limit
	Exact   bool   // toold itself refused it; otherwise inferred from a program's output and confirmed by the profile
	Setting string // configuration key or policy rule behind the refusal
	Hint    string // why, and what to do next; for people and models
}

// Error returns what was refused, why, and what to do next.
func (d *Denial) Error() string {
	text := "cannot " + d.Op
	if d.Kind != DeniedLimit { // there, Op says it all
		text += " " + d.name()
	}
	return text + ": " + d.Hint
}

// name returns the target, quoted if it could be mistaken for toold's own text.
func (d *Denial) name() string {
	named := d.Kind == DeniedFile || d.Kind == DeniedProtected || d.Kind == DeniedSocket
	odd := func(r rune) bool { return r == '"' || unicode.IsSpace(r) || !unicode.IsPrint(r) }
	if named && strings.ContainsFunc(d.Target, odd) {
		return strconv.Quote(d.Target)
	}
	return d.Target
}

// Notice returns the denial as a sentence for a result. It does not escape text from a command.
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

// Denied returns the denial for a path that a command could not read or change, or nil if the profile allows it. The
// result is not Exact. Since the path comes from the command, the result does not depend on what exists there.
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
	// The target of a link is not reported if the command cannot see it.
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

// keeps sets why a visible path cannot be changed, and reports whether something prevents it.
func (p Profile) keeps(d *Denial, canonical string) bool {
	for _, kept := range p.Protect {
		if paths.Within(canonical, kept) || paths.Within(kept, canonical) {
			d.Kind, d.Op, d.Setting = DeniedProtected, "change", settingProtect
			d.Hint = "other programs run or obey what is there (sandbox.protect); " + InsteadOf(canonical)
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
	if d.Setting == "sandbox.write" && (strings.HasSuffix(canonical, "/.gitconfig") || strings.HasSuffix(canonical, "/.config/git/config")) {
		d.Hint = "it is outside of the directories that commands may change; " + insteadOfGit
	}
	return true
}

// InsteadOf returns what to do where a command cannot change a protected path. The built-in rules deny
// git's and the workspace's own files to the file tools, too.
func InsteadOf(protected string) string {
	inGit := strings.Contains(protected+"/", "/.git/")
	switch {
	case inGit && strings.HasPrefix(filepath.Base(protected), "config"):
		return insteadOfGit
	case inGit || strings.Contains(protected+"/", "/.toold/"):
		return "do without it, or ask the user to do it"
	}
	return "use write_file, which asks the user, or ask the user to do it"
}

const insteadOfGit = "git's configuration is as it was, whatever git printed: set it for one command with git -c NAME=VALUE, or ask the user to run the command"

// Settings that several files name.
const (
	settingHide    = "sandbox.hide"
	settingRead    = "sandbox.read"
	settingProtect = "sandbox.protect"
)
