package bash

import (
	"fmt"
	"slices"

	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/guard"
)

// watch is the watch over what must stay as it is while one call runs: in what every
// call may write, and in the folder that was added for this one.
type watch struct {
	existing []string     // what is there, for the sandbox
	usual    *guard.Call  // nil = nothing is watched
	beside   *guard.Guard // of the added folder; nil = there is none
	added    *guard.Call  // of beside
}

// watch begins to watch over a call in a profile. An error means that the added
// folder cannot be watched: the call must not run.
func (o Options) watch(p sandbox.Profile, folder string) (w watch, err error) {
	if !o.guarded(p) {
		return w, nil
	}
	if folder != "" {
		if w.beside, err = o.Guard.Beside(folder); err != nil {
			return w, fmt.Errorf("%w: what is protected in %s could not be watched: %v", sandbox.ErrUnavailable, folder, err)
		}
	}
	w.usual = o.Guard.Begin(nil) // a script that was allowed may do more than it seems
	w.existing = w.usual.Existing()
	if w.beside != nil {
		w.added = w.beside.Begin(nil)
		w.existing = slices.Concat(w.existing, w.added.Existing())
	}
	return w, nil
}

// end ends the watch and returns what has appeared, and why not all of the added folder
// was seen; "" when all of it was.
func (w watch) end() (found []guard.Incident, blind string) {
	found = append(w.usual.End(), w.added.End()...)
	if why, unseen := w.beside.Blind(); unseen {
		blind = why
	}
	w.beside.Close()
	return found, blind
}
