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
	"github.com/toold/toold/sandbox/escalation"
	"github.com/toold/toold/tools"
)

// Workspace is what the calls in one directory share. NewWorkspace creates it.
type Workspace struct {
	opt   WorkspaceOptions
	rules atomic.Pointer[rules]
}

// WorkspaceOptions describe a Workspace. All fields but Listed, Profile, Escalation and Remember are required.
type WorkspaceOptions struct {
	Root     string          // canonical
	Registry *tools.Registry // every workspace has the same tools, by name
	Policy   *policy.Policy
	// Listed reports which hosts running calls may contact without a question, unless a rule asks or denies; may be
	// nil.
	Listed func(host string, port uint16) bool
	// Profile is the configured sandbox, and Escalation limits what people may add to it for one call; the zero
	// Limits allow nothing.
	Profile    sandbox.Profile
	Escalation escalation.Limits
	// Remember changes the user's policy file and applies it, for a person who approved a call; nil: there is no
	// such file.
	Remember func(changes []policy.Change, person, call string) error
}

// NewWorkspace returns a workspace under its first policy.
func NewWorkspace(o WorkspaceOptions) *Workspace {
	w := &Workspace{opt: o}
	w.rules.Store(&rules{policy: o.Policy, replaced: make(chan struct{})})
	return w
}

// SetPolicy makes p the policy of later decisions in the workspace. Running calls are not affected; calls that
// await approval are judged again.
func (w *Workspace) SetPolicy(p *policy.Policy) {
	old := w.rules.Swap(&rules{policy: p, replaced: make(chan struct{})})
	close(old.replaced)
}

// Workspaces finds the workspace of a call.
type Workspaces interface {
	// Use returns the workspace that contains dir, a canonical path; "" selects the default one. It may be used
	// until release is called. The error is a *workspaces.UnregisteredError if there is none.
	Use(ctx context.Context, dir string) (w *Workspace, release func(), err error)
}

// enter finds the workspace of a call and keeps it open: the one of the directory or file that the call names
// by an absolute path, else the one of its connection. A working directory outside of all workspaces is
// refused, unless calls may write it.
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

// located returns the canonical path that a call concerns; "" if it names none that is absolute. runs reports
// that it is the directory of a command.
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
		return "", false // the tool reports the error
	}
	return canonical, runs
}

// mayWrite reports whether calls in the workspace may write a directory outside of it: one of sandbox.write, or
// the private temporary directory.
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
