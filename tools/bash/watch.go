package bash

import (
	"fmt"
	"sync"

	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/masks"
	"github.com/toold/toold/sandbox/protect"
	"github.com/toold/toold/tools"
)

// watch observes the protected and masked paths while one call runs.
type watch struct {
	existing  []string
	violated  <-chan struct{} // closed when the call must end
	beside    *protect.Watcher
	protected []*protect.Call
	masked    []*masks.Call
}

// watch starts the watch and sets what the profile protects and masks. On an error the call must not
// run.
func (o Options) watch(p *sandbox.Profile, io tools.IO, makes bool) (w watch, err error) {
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
			c := watcher.Begin(nil, end) // no exceptions: a script may do more than it shows
			w.protected, w.existing = append(w.protected, c), append(w.existing, c.Existing()...)
		}
	}
	p.Protect = w.existing
	if p.Tier == sandbox.TierC { // it has no mounts
		return w, nil
	}
	p.Masks = nil
	for _, t := range []*masks.Tracker{o.Masks, tracker} {
		c, err := t.Begin(io.Policy, io.Opened, makes, end)
		if err != nil {
			return w, fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err)
		}
		w.masked, p.Masks = append(w.masked, c), p.Masks.With(c.Masks())
	}
	return w, nil
}

// addDirectory watches the directory that a person added to the call.
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
	replaced []sandbox.Mask
	blind    string // why a part of the added directory was unseen; or ""
}

func (w watch) end() (s seen) {
	for _, c := range w.protected {
		s.taken = append(s.taken, c.End()...)
	}
	for _, c := range w.masked {
		replaced, removed := c.End()
		s.replaced, s.taken = append(s.replaced, replaced...), append(s.taken, removed...)
	}
	if why, unseen := w.beside.Blind(); unseen {
		s.blind = why
	}
	w.beside.Close()
	return s
}
