package bash

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/egress"
	"github.com/toold/toold/sandbox/masks"
	"github.com/toold/toold/sandbox/protect"
	"github.com/toold/toold/tools"
)

type preparation struct {
	prepared    bool
	failure     error           // why the command must not run; other fields are then unset
	limited     bool            // the client restricted the sandbox
	configured  sandbox.Profile // without the client's restriction
	watched     watch
	seen        seen // set by unwatch
	reservation *executor.Reservation
}

func (v *invocation) Prepare(ctx context.Context, io tools.IO) {
	ctx, cancel := context.WithTimeout(ctx, v.timeout)
	defer cancel()
	o := v.tool.options
	v.prepared = true
	v.profile = io.Escalation.Escalate(o.Profile.AtMost(io.Profile).Within(io.Limit))
	v.configured, v.limited = io.Escalation.Escalate(o.Profile.AtMost(io.Profile)), !io.Limit.IsZero()
	if v.watched, v.failure = o.watch(ctx, &v.profile, io, !v.background); v.failure != nil {
		return
	}
	v.configured.Protect, v.configured.Masks = v.profile.Protect, v.profile.Masks
	v.profile = v.profile.Within(sandbox.Limit{ReadOnly: io.Limit.ReadOnly}) // which watch has replaced
	pool := o.Pool
	if io.Escalation != nil {
		pool = nil // a warm shell has another sandbox
	}
	v.reservation = pool.Reserve(v.command())
}

func (v *invocation) Drop() {
	if v.reservation != nil {
		v.reservation.Drop()
	}
	v.unwatch()
	v.pinned.Close() // may be nil
}

func (v *invocation) unwatch() {
	begun := v.watched
	v.watched = watch{}
	v.seen = begun.end()
}

// env returns the environment. Without a sandbox it omits the variables for private tool caches.
func (v *invocation) env() []string {
	o := v.tool.options
	if v.profile.Mode != sandbox.FullAccess {
		return o.Env // must equal the environment of warm shells
	}
	private := o.Profile.Caches.Env()
	return slices.DeleteFunc(slices.Clone(o.Env), func(entry string) bool { return slices.Contains(private, entry) })
}

func (v *invocation) command() executor.Command {
	o := v.tool.options
	return executor.Command{
		Script: v.script, Dir: v.dir, DirIs: v.dirIs, Env: v.env(), Terminal: v.terminal, Stdin: v.stdin,
		Timeout: v.timeout, Grace: o.Grace, Sandbox: v.profile, WaitAll: v.background,
	}
}

func (v *invocation) network(io tools.IO) *egress.Server {
	o := v.tool.options.Egress
	o.Allow, o.Revoked = io.Connect, io.Revoked
	if o.Allow == nil {
		o.Allow = func(context.Context, string, []uint16) error {
			return errors.New("no one decides on connections here")
		}
	}
	return egress.New(o)
}

// watch observes protected and masked paths during a call.
type watch struct {
	existing  []string         // protected paths
	violated  <-chan struct{}  // closed when the call must end
	beside    *protect.Watcher // for a directory added by an escalation; may be nil
	protected []*protect.Call
	masked    []*masks.Call
}

// watch sets the protected and masked paths of the profile. After an error the call must not run.
func (o Options) watch(ctx context.Context, p *sandbox.Profile, io tools.IO, makes bool) (w watch, err error) {
	defer func() {
		if err != nil {
			w.end()
			w = watch{}
		}
	}()
	if p.Mode == sandbox.FullAccess {
		return w, nil
	}
	tracker, err := w.addDirectory(o, io.Escalation.Dir())
	if err != nil {
		return w, err
	}
	abort := make(chan struct{})
	end := sync.OnceFunc(func() { close(abort) })
	w.violated = abort
	if o.protects(*p) {
		w.existing = []string{}
		for _, watcher := range []*protect.Watcher{o.Protect, w.beside} {
			c, err := watcher.Begin(ctx, nil, end) // no exceptions, because a script may do more than it shows
			if err != nil {
				return w, fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err)
			}
			w.protected, w.existing = append(w.protected, c), append(w.existing, c.Existing()...)
		}
	}
	p.Protect = w.existing
	if p.Tier == sandbox.TierC { // tier C has no mounts
		return w, nil
	}
	p.Masks = nil
	for _, t := range []*masks.Tracker{o.Masks, tracker} {
		c, err := t.Begin(ctx, io.Policy, io.Opened, makes, end)
		if err != nil {
			return w, fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err)
		}
		w.masked, p.Masks = append(w.masked, c), p.Masks.With(c.Masks())
	}
	return w, nil
}

func (w *watch) addDirectory(o Options, directory string) (tracker *masks.Tracker, err error) {
	if directory == "" {
		return nil, nil
	}
	if tracker, w.beside, err = masks.Beside(o.Masks, o.Protect, directory); err != nil {
		return nil, fmt.Errorf("%w: protected paths in %s could not be watched: %v", sandbox.ErrUnavailable, directory, err)
	}
	return tracker, nil
}

type seen struct {
	taken    []protect.Incident
	replaced []sandbox.Mask // masked files
	blind    string         // why a part of the added directory was not watched; or ""
}

func (w watch) end() (s seen) {
	for _, c := range w.protected {
		s.taken = append(s.taken, c.End()...)
	}
	for _, c := range w.masked {
		replaced, removed := c.End()
		s.replaced, s.taken = append(s.replaced, replaced...), append(s.taken, removed...)
	}
	if why, unseen := w.beside.Unwatched(); unseen {
		s.blind = why
	}
	w.beside.Close()
	return s
}
