package executor

import (
	"bytes"
	"context"
	"time"

	"github.com/toold/toold/sandbox"
)

const (
	// A command that has just printed something is at work. Only one that was
	// silent so long is looked at, which costs the many short ones nothing.
	quiet      = 700 * time.Millisecond
	lookEvery  = 500 * time.Millisecond
	lookSeldom = 2 * time.Second // at one that has been silent, and at work, for long
	longQuiet  = 10 * time.Second

	// starveAfter is how long a program may wait for input that cannot come, and
	// starveLooks how often it must have been found waiting meanwhile: a busy machine
	// may look for the first time when the time is over, and has given it no end yet.
	starveAfter = 5 * time.Second
	starveLooks = 6

	mostWaits = 1000 // that are told of one command
	mostEnds  = 10   // key presses of ^D for one that takes single keys
	manyEnds  = 512  // ends for one that has used up the first few; a terminal queues 4096
)

// watch is what Run knows of a command that waits for input. It is Run's alone.
type watch struct {
	now   Waiting
	looks int // that found it so
	told  int
	ends  int
}

// look returns when to look again, or that the command waits in vain.
func (r *running) look(ctx context.Context) (again time.Duration, starved bool) {
	now := time.Now()
	silent := r.streams.idle(now)
	if silent < quiet && !r.watch.now.Waits {
		return quiet - silent, false
	}
	ctx, cancel := context.WithTimeout(ctx, lookEvery)
	defer cancel()
	w, waits := r.process.Waiting(ctx)
	r.note(w, waits)
	if r.ended() {
		r.keepEnded(waits)
	}
	r.watch.looks++
	long := now.Sub(r.watch.now.Since) >= starveAfter && r.watch.looks >= starveLooks
	if waits && w.Stuck && (r.ended() || w.Deaf) && long {
		return 0, true
	}
	if !waits && silent > longQuiet {
		return lookSeldom, false
	}
	return lookEvery, false
}

// note tells the caller what has changed. A wait lasts until its process goes on
// or is given something; what others print meanwhile does not end it.
func (r *running) note(w sandbox.Wait, waits bool) {
	before := r.watch.now
	given := r.streams.given()
	same := waits && before.Waits && before.Process.PID == w.Process.PID && before.Kind == w.Kind && !given.After(before.Since)
	if same || !waits && !before.Waits {
		return
	}
	if before.Waits {
		before.Waits = false
		r.tell(before)
	}
	r.watch.now, r.watch.looks = Waiting{}, 0
	if waits {
		since := r.streams.lastOutput()
		for _, t := range []time.Time{given, r.begun} {
			if t.After(since) {
				since = t
			}
		}
		r.watch.now = Waiting{Waits: true, Kind: w.Kind, Since: since, Process: w.Process}
		r.tell(r.watch.now)
	}
}

func (r *running) tell(w Waiting) {
	if r.Waiting == nil || r.watch.told >= 2*mostWaits {
		return
	}
	r.watch.told++
	r.Waiting(w)
}

// ended reports whether the command's input is at its end.
func (r *running) ended() bool { return !r.Stdin || r.streams.atEnd.Load() }

// keepEnded gives a terminal the end of its input once more: programs that ask for a password
// throw away what was typed before. One that takes single keys is given the key alone.
func (r *running) keepEnded(waits bool) {
	s := r.streams
	if s.ctty == nil {
		return
	}
	peer, err := lookAtPeer(s.ctty)
	switch {
	case err != nil || peer.pending:
	case peer.lines:
		_, _ = s.ctty.Write(bytes.Repeat([]byte{eof}, manyEnds))
	case waits && r.watch.ends < mostEnds:
		r.watch.ends++
		_, _ = s.ctty.Write([]byte{eof})
	}
}
