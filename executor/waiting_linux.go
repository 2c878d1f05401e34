package executor

import (
	"bytes"
	"context"
	"time"

	"github.com/toold/toold/sandbox/launch"
)

const (
	// A command is only checked after it was silent for quiet, so short ones cost nothing.
	quiet      = 700 * time.Millisecond
	lookEvery  = 500 * time.Millisecond
	lookSeldom = 2 * time.Second
	longQuiet  = 10 * time.Second

	// starveAfter is how long a program may wait for input that cannot arrive. It must also have been found waiting
	// starveLooks times, since a late first check may precede its EOF.
	starveAfter = 5 * time.Second
	starveLooks = 6

	mostWaits = 1000 // reported for one command
	mostEnds  = 10   // ^D characters for a program that reads single keys
	manyEnds  = 512  // for a program that used up the first ones; a terminal queues 4096
)

type watch struct {
	now      Waiting
	looks    int // number of checks that found it waiting
	reported int
	ends     int
}

// look checks whether the command waits. It returns when to check again, or that the command starves.
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
	stuck := waits && w.Stuck && long
	if stuck && (r.ended() || w.Deaf) {
		return 0, true
	}
	if !waits && silent > longQuiet {
		return lookSeldom, false
	}
	return lookEvery, false
}

// note reports changes. A wait ends when its process continues or gets input, not with output of other processes.
func (r *running) note(w launch.Wait, waits bool) {
	before := r.watch.now
	given := time.Unix(0, r.streams.lastInput.Load())
	same := waits == before.Waits
	if waits && same {
		same = before.Process.PID == w.Process.PID && before.Kind == w.Kind && !given.After(before.Since)
	}
	if same {
		return
	}
	if before.Waits {
		before.Waits = false
		r.report(before)
	}
	r.watch.now, r.watch.looks = Waiting{}, 0
	if waits {
		since := r.streams.lastOutputAt()
		for _, t := range []time.Time{given, r.begun} {
			if t.After(since) {
				since = t
			}
		}
		r.watch.now = Waiting{Waits: true, Kind: w.Kind, Since: since, Process: w.Process}
		r.report(r.watch.now)
	}
}

func (r *running) report(w Waiting) {
	if r.Waiting == nil || r.watch.reported >= 2*mostWaits {
		return
	}
	r.watch.reported++
	r.Waiting(w)
}

func (r *running) ended() bool { return !r.Stdin || r.streams.atEnd.Load() }

// keepEnded writes EOF to a terminal again, since programs that ask for a password discard earlier input. A program
// that reads single keys gets one character.
func (r *running) keepEnded(waits bool) {
	s := r.streams
	if s.ctty == nil {
		return
	}
	state, err := readTTYState(s.ctty)
	switch {
	case err != nil || state.pending:
	case state.lines:
		_, _ = s.ctty.Write(bytes.Repeat([]byte{eof}, manyEnds))
	case waits && r.watch.ends < mostEnds:
		r.watch.ends++
		_, _ = s.ctty.Write([]byte{eof})
	}
}
