package bash

import (
	"slices"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/tools"
)

// preparation is what a call has before it runs.
type preparation struct {
	prepared bool
	failure  error // why it must not run; the rest is not there then
	guarded  watch
	seen     seen // what it has found, once it is over
	held     *executor.Held
}

// Prepare begins to make the sandbox of the script, or brings it to a shell that
// waits in one.
func (v *invocation) Prepare(io tools.IO) {
	o := v.tool.options
	v.prepared = true
	v.profile = io.Widen.Widen(o.Profile.AtMost(io.Profile).Within(io.Limit))
	if v.guarded, v.failure = o.watch(&v.profile, io, !v.background); v.failure != nil {
		return
	}
	v.profile = v.profile.Within(sandbox.Limit{ReadOnly: io.Limit.ReadOnly}) // which watch has replaced
	pool := o.Pool
	if io.Widen != nil {
		pool = nil // no shell waits for a call of its kind, nor is one started for the next
	}
	v.held = pool.Hold(v.command())
}

// Drop gives up what Prepare has begun.
func (v *invocation) Drop() {
	if v.held != nil {
		v.held.Drop()
	}
	v.unwatch()
	v.pinned.Close() // allowed on nil
}

// unwatch ends the watch over what the script may not change and read. What it found is
// in seen.
func (v *invocation) unwatch() {
	begun := v.guarded
	v.guarded = watch{}
	v.seen = begun.end()
}

// env is the environment of the script. Where nothing confines it, the folders are not
// there that the sandbox has in the place of tool caches.
func (v *invocation) env() []string {
	o := v.tool.options
	if v.profile.Mode != sandbox.FullAccess {
		return o.Env // as it is: a shell that waits for this call has the same
	}
	private := o.Profile.Caches.Env()
	return slices.DeleteFunc(slices.Clone(o.Env), func(entry string) bool { return slices.Contains(private, entry) })
}

// command is the script as the executor takes it, without what it is told while it
// runs.
func (v *invocation) command() executor.Command {
	o := v.tool.options
	return executor.Command{
		Script: v.script, Dir: v.dir, DirIs: v.dirIs, Env: v.env(), Terminal: v.terminal, Rows: o.Rows, Cols: o.Cols, Stdin: v.stdin,
		Timeout: v.timeout, Grace: o.Grace, Sandbox: v.profile, WaitAll: v.background,
	}
}
