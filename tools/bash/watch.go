package bash

import (
	"context"
	"fmt"
	"slices"

	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/masks"
	"github.com/toold/toold/sandbox/protect"
	"github.com/toold/toold/tools"
)

// watch observes the protected and masked paths while one call runs: in what every call may
// write, and in the directory that was added for this one.
type watch struct {
	existing []string         // protected paths that exist
	usual    *protect.Call    // nil: nothing is watched
	beside   *protect.Watcher // of the added directory; nil: none
	added    *protect.Call    // of beside
	masked   *masks.Call
	addition *masks.Call // of the added directory
}

// watch starts to watch over a call and fills in what its profile protects and masks. If it
// returns an error, the call must not run.
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
	tracker, err := w.addDirectory(o, io.Widen.Folder())
	if err != nil {
		return w, err
	}
	if o.guarded(*p) {
		w.usual = o.Protect.Begin(nil) // no exceptions: a script may do more than it shows
		w.existing = w.usual.Existing()
		if w.beside != nil {
			w.added = w.beside.Begin(nil)
			w.existing = slices.Concat(w.existing, w.added.Existing())
		}
	}
	p.Protect = w.existing
	if p.Tier == sandbox.TierC { // which has no mounts
		return w, nil
	}
	if w.masked, err = o.Masks.Begin(io.Policy, io.Opened, makes); err == nil {
		w.addition, err = tracker.Begin(io.Policy, io.Opened, makes)
	}
	if err != nil {
		return w, fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err)
	}
	p.Masks = w.masked.Masks().With(w.addition.Masks())
	return w, nil
}

// addDirectory starts to watch the directory that a person added to the call, if any.
func (w *watch) addDirectory(o Options, directory string) (tracker *masks.Tracker, err error) {
	if directory == "" {
		return nil, nil
	}
	if tracker, w.beside, err = masks.Beside(o.Masks, o.Protect, directory); err != nil {
		return nil, fmt.Errorf("%w: protected paths in %s could not be watched: %v", sandbox.ErrUnavailable, directory, err)
	}
	return tracker, nil
}

// violated returns a channel that is closed when the call must end, and one that is closed
// when the watching ended, with ctx at the latest.
func (w watch) violated(ctx context.Context) (abort <-chan struct{}, done <-chan struct{}) {
	stop, ended := make(chan struct{}), make(chan struct{})
	// Ends with ctx.
	go func() {
		defer close(ended)
		select {
		case <-w.usual.Violated():
		case <-w.added.Violated():
		case <-w.masked.Violated():
		case <-w.addition.Violated():
		case <-ctx.Done():
			return
		}
		close(stop)
	}()
	return stop, ended
}

type seen struct {
	taken    []protect.Incident
	replaced []sandbox.Mask // masked files that were replaced
	blind    string         // why a part of the added directory was unseen; or ""
}

func (w watch) end() (s seen) {
	s.taken = append(w.usual.End(), w.added.End()...)
	for _, c := range []*masks.Call{w.masked, w.addition} {
		replaced, removed := c.End()
		s.replaced, s.taken = append(s.replaced, replaced...), append(s.taken, removed...)
	}
	if why, unseen := w.beside.Blind(); unseen {
		s.blind = why
	}
	w.beside.Close()
	return s
}
