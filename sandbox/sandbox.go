// Package sandbox confines processes and file access.
//
// A confined process is started by a helper: this very binary, re-executed
// into fresh namespaces (see Start). What cannot be confined does not run.
package sandbox

import (
	"errors"
	"fmt"

	"github.com/toold/toold/sandbox/cgroup"
)

// Mode is how much of the machine a call may change. The zero value is the
// strictest.
type Mode int

// The modes, named as in the field.
const (
	ReadOnly       Mode = iota // nothing but a private /tmp can be written
	WorkspaceWrite             // the workspace and the listed roots can be written
	FullAccess                 // no confinement; must be chosen explicitly
)

// String returns the mode's name in configuration and on the wire.
func (m Mode) String() string {
	return [...]string{"read-only", "workspace-write", "danger-full-access"}[m]
}

// ParseMode reads a mode's name.
func ParseMode(s string) (Mode, error) {
	for _, m := range []Mode{ReadOnly, WorkspaceWrite, FullAccess} {
		if s == m.String() {
			return m, nil
		}
	}
	return ReadOnly, fmt.Errorf("unknown sandbox profile %q: expected read-only, workspace-write or danger-full-access", s)
}

// Profile is what a call is confined to. All paths are absolute and canonical.
type Profile struct {
	Mode      Mode
	Workspace string
	Write     []string // further writable roots; each must exist
	Read      []string // folders that can be read besides the system's where all others are hidden, which is in TierC; missing ones are skipped
	Hide      []string // files and folders that cannot be read; missing ones are skipped
	Protect   []string // existing paths in what is writable that a call cannot change, move or remove
	Masks     *MaskSet // what rules keep from a call besides; nil = nothing
	Names     []string // names that a call cannot write anywhere in what is writable; for macOS, see seatbelt
	Caches    *Caches  // the tool caches of workspace-write; nil = they can only be read
	Launcher  string   // who makes the namespaces, for Choose: "native", "bwrap", or with any other word bwrap where toold itself cannot
	Tier      Tier     // what the machine gives; see Choose
	Degraded  string   // why it is not TierA, for the Report
	Sockets   []string // local sockets of the machine that may be connected to; missing ones are skipped
	Network   bool     // the host's network; false = an own, empty one with loopback
	Ports     []uint16 // without Network: questions for names and connections to these go to Process.Doors
	Limits    Limits
	Groups    *cgroup.Root // where calls get a control group each, in every mode; nil = they have none

	// Pinned are those of Write that must be the very folder that Pin has told, by
	// path. The sandbox does not start when another one is there.
	Pinned map[string]string
}

// Limits bound what one call may use. Zero means unlimited.
type Limits struct {
	Processes   uint64 // and threads, in the call's control group; without one RLIMIT_NPROC within the sandbox's user namespace, for root process numbers
	OpenFiles   uint64 // RLIMIT_NOFILE
	FileBytes   uint64 // RLIMIT_FSIZE
	MemoryBytes uint64 // sum of private memory of the call's processes; where a control group bounds it, with their private /tmp
	TmpBytes    uint64 // size of the private /tmp
}

// Report is what held while a call ran. It stands in every return.
type Report struct {
	// Proxy tells that connections could be made through toold, by name.
	Proxy bool `json:"proxy,omitempty"`

	Profile string `json:"profile"`
	// Enforced is e.g. "namespaces", "landlock:7", "seccomp", "sockets"; empty in danger-full-access.
	// "sockets": local sockets of the machine cannot be connected to but the listed ones;
	// "no-sockets" where the kernel lets nobody judge that, so that there are none but pairs.
	// "cgroup" or "cgroup:memory": a control group bounds processes, or memory as well.
	Enforced []string `json:"enforced"`
	Network  bool     `json:"network"` // whether the host's network could be reached
	// Tier is "A" where every layer held a process, "A-bwrap" where that was so and bwrap
	// had made the namespaces, "B" where processes had no namespace of their own, "C" where
	// there were no namespaces at all; "path" for a file tool that the daemon's check of the
	// path has refused before anything was opened; "none" in danger-full-access.
	Tier string `json:"tier"`
	// Degraded tells why the tier is not A, and what would mend it.
	Degraded string `json:"degraded,omitempty"`
	// Caches is "overlay" where calls see the machine's tool caches with their own
	// changes, "private" where of some they see only their own, "" where there are none.
	Caches string `json:"caches,omitempty"`
	// Unwatched tells that protected names could appear where nobody watches, and why.
	Unwatched string `json:"unwatched,omitempty"`
}

// ErrUnavailable is what errors.Is finds in every refusal to confine.
var ErrUnavailable = errors.New("sandbox unavailable")

// StageError says at which stage of its set-up the sandbox failed. Nothing of
// the call ran.
type StageError struct {
	Stage  string // e.g. "clone", "mount /proc", "landlock", "seccomp"
	Err    error
	Advice string // what to do next, for people; may be empty
}

func (e *StageError) Error() string {
	s := fmt.Sprintf("sandbox unavailable: %s: %v", e.Stage, e.Err)
	if e.Advice != "" {
		s += "; " + e.Advice
	}
	return s
}

// Unwrap makes both the kernel's error and ErrUnavailable visible to errors.Is.
func (e *StageError) Unwrap() []error { return []error{ErrUnavailable, e.Err} }
