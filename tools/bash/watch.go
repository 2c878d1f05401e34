package bash

import (
	"context"
	"fmt"
	"slices"

	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/protect"
)

// watch is the watch over what must stay as it is while one call runs: in what every
// call may write, and in the folder that was added for this one.
type watch struct {
	existing []string         // what is there, for the sandbox
	usual    *protect.Call    // nil = nothing is watched
	beside   *protect.Watcher // of the added directory; nil = there is none
	added    *protect.Call    // of beside
}

// watch begins to watch over a call in a profile. An error means that the added
// folder cannot be watched: the call must not run.
func (o Options) watch(p sandbox.Profile, folder string) (w watch, err error) {
	if !o.guarded(p) {
		return w, nil
	}
	if folder != "" {
		if w.beside, err = o.Protect.Beside(folder); err != nil {
			return w, fmt.Errorf("%w: what is protected in %s could not be watched: %v", sandbox.ErrUnavailable, folder, err)
		}
	}
	w.usual = o.Protect.Begin(nil) // a script that was allowed may do more than it seems
	w.existing = w.usual.Existing()
	if w.beside != nil {
		w.added = w.beside.Begin(nil)
		w.existing = slices.Concat(w.existing, w.added.Existing())
	}
	return w, nil
}

// violated is closed when the call has to be ended; done, when ctx has ended.
func (w watch) violated(ctx context.Context) (abort <-chan struct{}, done <-chan struct{}) {
	stop, ended := make(chan struct{}), make(chan struct{})
	// Ends with ctx.
	go func() {
		defer close(ended)
		select {
		case <-w.usual.Violated():
			close(stop)
		case <-w.added.Violated():
			close(stop)
		case <-ctx.Done():
		}
	}()
	return stop, ended
}

// end ends the watch and returns what has appeared, and why not all of the added folder
// was seen; "" when all of it was.
func (w watch) end() (found []protect.Incident, blind string) {
	found = append(w.usual.End(), w.added.End()...)
	if why, unseen := w.beside.Blind(); unseen {
		blind = why
	}
	w.beside.Close()
	return found, blind
}
