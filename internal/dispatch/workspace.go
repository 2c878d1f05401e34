package dispatch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/internal/workspaces"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/widen"
	"github.com/toold/toold/tools"
)

// Workspace is what the calls in one directory share. Make it with NewWorkspace.
type Workspace struct {
	opt   WorkspaceOptions
	rules atomic.Pointer[rules]
}

// WorkspaceOptions describe a Workspace. All fields but Listed, Profile and Widen are
// needed.
type WorkspaceOptions struct {
	Root     string          // canonical
	Registry *tools.Registry // every workspace has the same tools, by name
	Policy   *policy.Policy
	// Listed reports which hosts running calls may contact without being asked for,
	// unless a rule asks or denies; nil = none.
	Listed func(host string, port uint16) bool
	// Profile is the sandbox that is configured, and Widen what people may add to it
	// with their yes to one call; the zero Bounds let nothing be added.
	Profile sandbox.Profile
	Widen   widen.Bounds
	// Remember makes changes in the user's policy file and puts them into force, for a
	// person who said yes to a call; nil = there is no such file.
	Remember func(changes []policy.Change, person, call string) error
}

// NewWorkspace returns a workspace under its first policy.
func NewWorkspace(o WorkspaceOptions) *Workspace {
	w := &Workspace{opt: o}
	w.rules.Store(&rules{policy: o.Policy, replaced: make(chan struct{})})
	return w
}

// SetPolicy makes later decisions in the workspace follow p. Running calls are not
// affected; calls that wait for a person are judged again.
func (w *Workspace) SetPolicy(p *policy.Policy) {
	old := w.rules.Swap(&rules{policy: p, replaced: make(chan struct{})})
	close(old.replaced)
}

// Workspaces finds the workspace of a call.
type Workspaces interface {
	// Use returns the workspace that contains dir, a canonical path; "" stands for the
	// one of callers who name none. It can be used until release is called. The error is
	// a *workspaces.UnregisteredError when there is none.
	Use(ctx context.Context, dir string) (w *Workspace, release func(), err error)
}

// enter finds the workspace of a call and holds it for the call: the one of the directory
// or file that the call names by an absolute path, else the one of its connection. A
// directory to run in that is in no workspace is refused, unless calls may write it.
func (d *Dispatcher) enter(ctx context.Context, c *Call) *refusal {
	named, runs := d.located(c.asked)
	if named != "" {
		w, leave, err := d.opt.Workspaces.Use(ctx, named)
		switch {
		case err == nil:
			c.workspace, c.leave = w, leave
			return nil
		case !unregistered(err):
			return unusable(ctx, err)
		}
	}
	w, leave, err := d.opt.Workspaces.Use(ctx, c.dir)
	if err != nil {
		return unusable(ctx, err)
	}
	c.workspace, c.leave = w, leave
	if runs && isDirectory(named) && !w.mayWrite(named) {
		return &refusal{message.InvalidArguments, fmt.Sprintf("cwd: %q is in no registered workspace, so no command runs there. Work in %s, or ask the user to run: toold workspaces add %s", named, w.opt.Root, named)}
	}
	return nil
}

func (c *Call) leaveWorkspace() {
	if c.leave != nil {
		c.leave()
		c.leave = nil
	}
}

// located returns the canonical path that a call is about; "" when it names none that is
// absolute. runs reports that it is the directory of a command.
func (d *Dispatcher) located(asked message.ToolCall) (path string, runs bool) {
	tool, _, _ := d.opt.Registry.Lookup(asked.Name)
	t, ok := tool.(tools.Located)
	if !ok || asked.Invalid != "" {
		return "", false
	}
	path, runs = t.Location(asked.Arguments)
	if !filepath.IsAbs(path) {
		return "", false
	}
	canonical, err := paths.Resolve(path)
	if err != nil {
		return "", false // the tool reports it
	}
	return canonical, runs
}

// mayWrite reports whether calls in the workspace may write a directory that need not be
// in it: one of sandbox.write, or the private directory for temporary files.
func (w *Workspace) mayWrite(dir string) bool {
	return workspaces.Containing(w.opt.Profile.Write, dir) != "" || (dir == "/tmp" || dir == "/var/tmp") && w.opt.Profile.Scratch(dir)
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func unregistered(err error) bool {
	var e *workspaces.UnregisteredError
	return errors.As(err, &e)
}

func unusable(ctx context.Context, err error) *refusal {
	if ctx.Err() != nil {
		return stopped(ctx)
	}
	if unregistered(err) {
		return &refusal{message.InvalidArguments, err.Error() + ". Nothing ran; ask the user to register it"}
	}
	return &refusal{message.SandboxUnavailable, err.Error() + "; nothing ran. Ask the user to look at it (toold doctor)"}
}
