package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/internal/workspaces"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/escalation"
	"github.com/toold/toold/tools"
)

// Workspace is the policy, tools and sandbox that the calls in one directory share.
type Workspace struct {
	opt   WorkspaceOptions
	rules atomic.Pointer[rules]
}

// WorkspaceOptions configures a Workspace. Listed, Profile, Escalation and Remember are optional.
type WorkspaceOptions struct {
	Root     string          // canonical
	Registry *tools.Registry // has the same tools in every workspace
	Policy   *policy.Policy
	// Listed reports whether running calls may contact a host without approval, unless a rule asks or denies.
	Listed func(host string, port uint16) bool
	// Profile is the configured sandbox. Escalation limits what people may add for one call; its zero value allows
	// nothing.
	Profile    sandbox.Profile
	Escalation escalation.Limits
	// Remember returns the function that changes the user's policy file for a person who approved a call, or nil if
	// there is no such file.
	Remember func() func(changes []policy.Change, person, call string) error
}

// NewWorkspace returns a Workspace.
func NewWorkspace(o WorkspaceOptions) *Workspace {
	if o.Remember == nil {
		o.Remember = func() func([]policy.Change, string, string) error { return nil }
	}
	w := &Workspace{opt: o}
	w.rules.Store(&rules{policy: o.Policy, replaced: make(chan struct{})})
	return w
}

// SetPolicy replaces the policy. Waiting calls are decided again. Running ones keep theirs, except for connections.
func (w *Workspace) SetPolicy(p *policy.Policy) {
	old := w.rules.Swap(&rules{policy: p, replaced: make(chan struct{})})
	close(old.replaced)
}

// Workspaces finds the workspace of a call.
type Workspaces interface {
	// Use returns the workspace of a canonical path, or the default one for "". It remains usable until release is
	// called. The error is a *workspaces.UnregisteredError if there is none.
	Use(ctx context.Context, dir string) (w *Workspace, release func(), err error)
}

// enter finds the call's workspace and keeps it open: that of the first absolute path that the call names, otherwise
// that of its connection. The other paths must not lead into another workspace, and no command runs outside all
// workspaces, except where calls may write.
func (d *Dispatcher) enter(ctx context.Context, c *Call) *refusal {
	named, runs := d.located(c.asked)
	if err := d.findWorkspace(ctx, c, named); err != nil {
		return unusable(ctx, err)
	}
	for _, path := range named {
		if refused := d.refuseStray(ctx, c.workspace, path, runs); refused != nil {
			return refused
		}
	}
	return nil
}

// findWorkspace sets the workspace of the call.
func (d *Dispatcher) findWorkspace(ctx context.Context, c *Call, named []string) (err error) {
	at := ""
	if len(named) > 0 {
		at = canonical(named[0])
	}
	if at = cmp.Or(at, canonical(c.near)); at != "" {
		c.workspace, c.leave, err = d.opt.Workspaces.Use(ctx, at)
		if !unregistered(err) {
			return err
		}
	}
	c.workspace, c.leave, err = d.opt.Workspaces.Use(ctx, c.dir)
	return err
}

// refuseStray refuses a path in another workspace and, as the directory of a command, one outside all workspaces. The
// path is absolute, or relative to the workspace.
func (d *Dispatcher) refuseStray(ctx context.Context, w *Workspace, path string, runs bool) *refusal {
	at := canonical(path)
	if !filepath.IsAbs(path) {
		at = canonical(w.opt.Root + "/" + path) // filepath.Join would remove "link/.."
	}
	if at == "" || paths.Within(at, w.opt.Root) {
		return nil // if at is "", the tool reports the error
	}
	other, leave, err := d.opt.Workspaces.Use(ctx, at)
	switch {
	case err == nil:
		defer leave()
		if other != w {
			return &refusal{message.InvalidArguments, fmt.Sprintf("%q leads into another workspace, %s, and a call works in one, here %s. To work there, send the absolute path %s in a call of its own", path, other.opt.Root, w.opt.Root, at)}
		}
	case !unregistered(err):
		return unusable(ctx, err)
	case runs && w.seesDirectory(at) && !w.mayWrite(at):
		return &refusal{message.InvalidArguments, fmt.Sprintf("cwd: %q is in no registered workspace, so no command runs there. Work in %s, or ask the user to run: toold workspaces add %s", at, w.opt.Root, display.Operand(at))}
	}
	return nil
}

func (c *Call) leaveWorkspace() {
	if c.leave != nil {
		c.leave()
		c.leave = nil
	}
}

// located returns the paths that a call names, as written. runs means that a command runs there.
func (d *Dispatcher) located(asked message.ToolCall) (named []string, runs bool) {
	tool, _, _ := d.opt.Registry.Lookup(asked.Name)
	t, ok := tool.(tools.Located)
	if !ok || asked.Invalid != "" {
		return nil, false
	}
	return t.Location(asked.Arguments)
}

// canonical resolves an absolute path. It returns "" for others, and for those that cannot be resolved.
func canonical(path string) string {
	if !filepath.IsAbs(path) {
		return ""
	}
	resolved, err := paths.Resolve(path)
	if err != nil {
		return ""
	}
	return resolved
}

// mayWrite reports whether calls may write to a directory outside the workspace: one of sandbox.write, or the private
// temporary directory.
func (w *Workspace) mayWrite(dir string) bool {
	isScratch := (dir == "/tmp" || dir == "/var/tmp") && w.opt.Profile.Scratch(dir)
	return isScratch || workspaces.Containing(w.opt.Profile.Write, dir) != ""
}

// seesDirectory reports whether a path is a directory that is not hidden from calls.
func (w *Workspace) seesDirectory(path string) bool {
	if workspaces.Containing(w.opt.Profile.Hide, path) != "" {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func unregistered(err error) bool {
	var e *workspaces.UnregisteredError
	return errors.As(err, &e)
}

// unusable returns the refusal for a workspace that cannot be used.
func unusable(ctx context.Context, err error) *refusal {
	if ctx.Err() != nil {
		return stopped(ctx)
	}
	if unregistered(err) {
		return &refusal{message.InvalidArguments, err.Error() + ". Nothing ran; ask the user to register it"}
	}
	return &refusal{message.SandboxUnavailable, err.Error() + "; nothing ran. Ask the user to look at it (toold doctor)"}
}
