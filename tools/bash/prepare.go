package bash

import (
	"slices"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/tools"
)

type preparation struct {
	prepared    bool
	failure     error // why it must not run
	watched     watch
	seen        seen // set by unwatch
	reservation *executor.Reservation
}

// Prepare starts to create the sandbox of the script, or assigns it to a warm shell.
func (v *invocation) Prepare(io tools.IO) {
	o := v.tool.options
	v.prepared = true
	v.profile = io.Escalation.Escalate(o.Profile.AtMost(io.Profile).Within(io.Limit))
	if v.watched, v.failure = o.watch(&v.profile, io, !v.background); v.failure != nil {
		return
	}
	v.profile = v.profile.Within(sandbox.Limit{ReadOnly: io.Limit.ReadOnly}) // which watch has replaced
	pool := o.Pool
	if io.Escalation != nil {
		pool = nil // no warm shell fits
	}
	v.reservation = pool.Reserve(v.command())
}

// Drop releases what Prepare started.
func (v *invocation) Drop() {
	if v.reservation != nil {
		v.reservation.Drop()
	}
	v.unwatch()
	v.pinned.Close() // allowed on nil
}

// unwatch ends the watch and stores its findings in seen.
func (v *invocation) unwatch() {
	begun := v.watched
	v.watched = watch{}
	v.seen = begun.end()
}

// env returns the environment. Without a sandbox it lacks the variables of private tool caches.
func (v *invocation) env() []string {
	o := v.tool.options
	if v.profile.Mode != sandbox.FullAccess {
		return o.Env // as of warm shells
	}
	private := o.Profile.Caches.Env()
	return slices.DeleteFunc(slices.Clone(o.Env), func(entry string) bool { return slices.Contains(private, entry) })
}

// command returns the executor's Command without input and output.
func (v *invocation) command() executor.Command {
	o := v.tool.options
	return executor.Command{
		Script: v.script, Dir: v.dir, DirIs: v.dirIs, Env: v.env(), Terminal: v.terminal, Rows: o.Rows, Cols: o.Cols, Stdin: v.stdin,
		Timeout: v.timeout, Grace: o.Grace, Sandbox: v.profile, WaitAll: v.background,
	}
}
