// Package sandbox defines how calls are confined: a Profile is what a call may read and change, a Report what was
// enforced, and a Denial what was refused.
//
// It starts and opens nothing. Package launch starts confined processes, fileworker opens files for calls; both
// refuse what they cannot confine.
package sandbox

import (
	"errors"
	"fmt"

	"github.com/toold/toold/sandbox/caches"
	"github.com/toold/toold/sandbox/cgroup"
)

// Mode is how much of the machine a call may change. The zero value is the strictest.
type Mode int

// The modes, named as by other agents.
const (
	ReadOnly       Mode = iota // only a private /tmp is writable
	WorkspaceWrite             // also the workspace and the listed directories
	FullAccess                 // no confinement; must be configured explicitly
)

// String returns the name in the configuration and on the wire.
func (m Mode) String() string {
	return [...]string{"read-only", "workspace-write", "danger-full-access"}[m]
}

// ParseMode parses the name of a mode.
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
	Write     []string    // more writable directories; each must exist
	Read      []string    // in TierC: the readable directories besides the system's; missing ones are skipped
	Hide      []string    // paths that cannot be read; missing ones are skipped
	Protect   []string    // existing writable paths that a call cannot change, move or remove
	Masks     *MaskSet    // what policy rules hide in addition; nil = nothing
	Names     []string    // names that a call cannot write in any writable directory; macOS only
	Caches    *caches.Set // tool caches in WorkspaceWrite; nil = read-only
	Launcher  string      // what creates the namespaces, for launch.Choose: "native" or "bwrap"; "" = bwrap only if native fails
	Tier      Tier        // what the machine supports; see launch.Choose
	Degraded  string      // why Tier is not TierA, for the Report
	Sockets   []string    // local sockets of the machine that calls may connect to; missing ones are skipped
	Network   bool        // the host's network; otherwise a private one with only loopback
	Ports     []uint16    // without Network: DNS queries and connections to these ports reach launch.Process.ProxyListeners
	Limits    Limits
	Groups    *cgroup.Root // parent of the control groups of calls; nil = none

	// Pinned maps entries of Write to their identities from launch.Pin. The sandbox does not start if another
	// directory has replaced one.
	Pinned map[string]string
}

// Limits limit the resources of one call. Zero means unlimited.
type Limits struct {
	Processes   uint64 // with threads, in the call's control group; without one, RLIMIT_NPROC in the sandbox's user namespace, for root process numbers
	OpenFiles   uint64 // RLIMIT_NOFILE
	FileBytes   uint64 // RLIMIT_FSIZE
	MemoryBytes uint64 // in bytes: private memory of all processes of the call; with a control group, including their private /tmp
	TmpBytes    uint64 // size of the private /tmp in bytes
}

// Report says what confined a call. Every return contains one.
type Report struct {
	// Proxy means that toold proxied connections by name.
	Proxy bool `json:"proxy,omitempty"`

	Profile string `json:"profile"`
	// Enforced lists e.g. "namespaces", "landlock:7" and "seccomp"; it is empty in danger-full-access. "sockets": the
	// call can connect only to the listed local sockets of the machine. "no-sockets": the kernel cannot check that,
	// so only socket pairs exist. "cgroup" or "cgroup:memory": a control group limits processes, or processes and
	// memory.
	Enforced []string `json:"enforced"`
	Network  bool     `json:"network"` // the host's network was reachable
	// Tier is "A" if every layer confined the process; "A-bwrap" if so, with namespaces created by bwrap; "B" without
	// a PID namespace; "C" without namespaces; "path" if the daemon refused a path before opening it; "none" in
	// danger-full-access.
	Tier string `json:"tier"`
	// Degraded says why the tier is not A, and how to fix that.
	Degraded string `json:"degraded,omitempty"`
	// Caches is "overlay" if calls see the machine's tool caches with their own changes on top, "private" if for some
	// caches they see only their own changes, and "" without caches.
	Caches string `json:"caches,omitempty"`
	// Unwatched says where protected names could appear undetected, and why.
	Unwatched string `json:"unwatched,omitempty"`
}

// ErrUnavailable is wrapped by every error of a sandbox that cannot be set up.
var ErrUnavailable = errors.New("sandbox unavailable")

// StageError is a failed stage of the setup of a sandbox. Nothing of the call ran.
type StageError struct {
	Stage  string // e.g. "clone", "mount /proc", "landlock", "seccomp"
	Err    error
	Advice string // next step for the user; may be ""
}

func (e *StageError) Error() string {
	s := fmt.Sprintf("sandbox unavailable: %s: %v", e.Stage, e.Err)
	if e.Advice != "" {
		s += "; " + e.Advice
	}
	return s
}

// Unwrap lets errors.Is find the kernel's error and ErrUnavailable.
func (e *StageError) Unwrap() []error { return []error{ErrUnavailable, e.Err} }
