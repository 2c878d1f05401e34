// Package sandbox says how calls are confined: what a Profile lets a call read and change, what was
// enforced, and what was refused.
//
// It starts and opens nothing. Package launch starts confined processes, fileworker opens files for
// calls; both refuse what they cannot confine.
package sandbox

import (
	"errors"
	"fmt"

	"github.com/toold/toold/sandbox/caches"
	"github.com/toold/toold/sandbox/cgroup"
)

// Mode is how much of the machine a call may change. The zero value is the
// strictest.
type Mode int

// The modes, named as in other agents.
const (
	ReadOnly       Mode = iota // nothing is writable but a private /tmp
	WorkspaceWrite             // the workspace and the listed roots are writable
	FullAccess                 // no confinement; must be chosen explicitly
)

// String returns the mode's name in configuration and on the wire.
func (m Mode) String() string {
	return [...]string{"read-only", "workspace-write", "danger-full-access"}[m]
}

// ParseMode parses a mode's name.
func ParseMode(s string) (Mode, error) {
	for _, m := range []Mode{ReadOnly, WorkspaceWrite, FullAccess} {
		if s == m.String() {
			return m, nil
		}
	}
	return ReadOnly, fmt.Errorf("unknown sandbox profile %q: expected read-only, workspace-write or danger-full-access", s)
}

// Profile is how a call is confined. All paths are absolute and canonical.
type Profile struct {
	Mode      Mode
	Workspace string
	Write     []string    // further writable roots; each must exist
	Read      []string    // readable directories besides the system's in TierC, which hides all others; missing ones are skipped
	Hide      []string    // paths that cannot be read; missing ones are skipped
	Protect   []string    // existing writable paths that a call cannot change, move or remove
	Masks     *MaskSet    // what policy rules hide besides; nil = nothing
	Names     []string    // names that a call cannot write in any writable directory; for macOS
	Caches    *caches.Set // the tool caches of workspace-write; nil = read-only
	Launcher  string      // what makes the namespaces, for launch.Choose: "native", "bwrap", or by default bwrap if native fails
	Tier      Tier        // what the machine supports; see launch.Choose
	Degraded  string      // why Tier is not TierA, for the Report
	Sockets   []string    // local sockets of the machine that calls may connect to; missing ones are skipped
	Network   bool        // the host's network; false = a private one with only loopback
	Ports     []uint16    // without Network: DNS queries and connections to these ports go to launch.Process.ProxyListeners
	Limits    Limits
	Groups    *cgroup.Root // where each call gets a control group; nil = none

	// Pinned maps entries of Write to the identity they must have, from launch.Pin. If another directory is
	// there, the sandbox does not start.
	Pinned map[string]string
}

// Limits bound the resources of one call. Zero means unlimited.
type Limits struct {
	Processes   uint64 // including threads, in the call's control group; without one RLIMIT_NPROC in the sandbox's user namespace, for root process numbers
	OpenFiles   uint64 // RLIMIT_NOFILE
	FileBytes   uint64 // RLIMIT_FSIZE
	MemoryBytes uint64 // sum of private memory of the call's processes; with a control group including their private /tmp
	TmpBytes    uint64 // size of the private /tmp
}

// Report is what confined a call. Every return contains it.
type Report struct {
	// Proxy is set if toold proxied connections by name.
	Proxy bool `json:"proxy,omitempty"`

	Profile string `json:"profile"`
	// Enforced has e.g. "namespaces", "landlock:7", "seccomp", "sockets"; it is empty in
	// danger-full-access. "sockets": only the listed local sockets of the machine can be connected to;
	// "no-sockets": the kernel does not support checking that, so there are only socket pairs. "cgroup"
	// or "cgroup:memory": a control group limits processes, or memory as well.
	Enforced []string `json:"enforced"`
	Network  bool     `json:"network"` // whether the host's network was reachable
	// Tier is "A" if every layer confined the process; "A-bwrap" if so, with namespaces made by bwrap;
	// "B" without a PID namespace; "C" without namespaces; "path" if the daemon's path check refused a
	// file before it was opened; "none" in danger-full-access.
	Tier string `json:"tier"`
	// Degraded is why the tier is not A, and how to fix it.
	Degraded string `json:"degraded,omitempty"`
	// Caches is "overlay" if calls see the machine's tool caches with their own changes, "private" if
	// they see only their own changes of some, "" without caches.
	Caches string `json:"caches,omitempty"`
	// Unwatched is where protected names could appear unnoticed, and why.
	Unwatched string `json:"unwatched,omitempty"`
}

// ErrUnavailable is wrapped by every refusal to confine.
var ErrUnavailable = errors.New("sandbox unavailable")

// StageError is a failed stage of the sandbox's setup. Nothing of the call ran.
type StageError struct {
	Stage  string // e.g. "clone", "mount /proc", "landlock", "seccomp"
	Err    error
	Advice string // next step for people; may be empty
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
