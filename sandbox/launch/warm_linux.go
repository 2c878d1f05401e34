package launch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toold/toold/sandbox/internal/helper"
	"github.com/toold/toold/sandbox/internal/snapshot"
)

// comparedFor is how long the result of a comparison of snapshots is used.
const comparedFor = 20 * time.Millisecond

type warmShell struct {
	room   int
	host   *snapshot.Cached
	answer chan error // whether the shell has its script; sent once, by listen
	asked  bool       // SetScript was called

	compared time.Time     // when compare started
	seen     chan struct{} // closed when compare has ended; nil before it started
	same     bool          // result of compare; valid once seen is closed
}

func newWarmShell(c Command) *warmShell {
	take := snapshot.TakeCached
	if c.Slots != nil {
		take = c.Slots.inputs.Take
	}
	return &warmShell{room: c.Room, host: take(inputsOf(c)), answer: make(chan error, 1)}
}

func (b *warmShell) answered(e helper.Event) {
	var err error
	if e.Kind == helper.EventFailed {
		err = fmt.Errorf("%w: cannot %s: %w", ErrGone, e.Stage, failureOf(e)) // and the helper ends
	}
	if b == nil {
		return
	}
	select {
	case b.answer <- err:
	default: // already answered
	}
}

func (b *warmShell) compare() {
	b.compared, b.seen = time.Now(), make(chan struct{})
	// Ends with the comparison; Release or close waits.
	go func() {
		defer close(b.seen)
		b.same = b.host.Same()
	}()
}

// unchanged waits for compare and returns its result. The result may be slightly outdated, but no more than a new
// sandbox is when its command starts.
func (b *warmShell) unchanged() bool {
	<-b.seen
	return b.same && (time.Since(b.compared) < comparedFor || b.host.Same())
}

func (b *warmShell) close() {
	if b == nil {
		return
	}
	if b.seen != nil {
		<-b.seen
	}
	b.host.Close()
}

// SetScript sets the script of a shell that was started with Room. It runs on Release. SetScript does not block, and
// may be called once. It returns an error if the script is too long or there is no such shell.
func (p *Process) SetScript(script string) error {
	switch {
	case p.warm == nil || p.warm.asked:
		return errors.New("cannot give a script: the command has one")
	case len(script) > p.warm.room || strings.IndexByte(script, 0) >= 0:
		return fmt.Errorf("cannot give a script of %d bytes: at most %d and no NUL fit", len(script), p.warm.room)
	}
	p.warm.asked = true
	p.order(helper.Order{Kind: helper.OrderSetScript, Script: script})
	p.warm.compare()
	return nil
}

// Errors of Release for a warm shell that was not used; nothing of it ran.
var (
	ErrChanged = errors.New("cannot run a script: what the sandbox was made from has changed")
	ErrGone    = errors.New("cannot run a script: the shell that waited, or its sandbox, is gone")
)

// Release runs the command that Reserve has prepared, or the script of SetScript. It may be called once. The end of
// ctx has no effect once the command may have started.
//
// An error means that nothing ran or will run. For a reserved command it is an error of Start. For a warm shell it is
// ErrChanged if the host has changed (a directory was replaced, a hidden file or a mount appeared), or ErrGone if the
// shell has ended or did not accept the script. The caller must then call End. A shell that is killed during its
// release counts as killed while it runs the script.
func (p *Process) Release(ctx context.Context) error {
	if p.warm == nil {
		p.goAhead()
		return p.hear(ctx)
	}
	if !p.warm.asked {
		return errors.New("cannot run a script: none was given")
	}
	if !p.warm.unchanged() {
		return ErrChanged
	}
	select {
	case <-p.exited:
		return ErrGone
	default:
	}
	// The helper processes orders in sequence. If it cannot set the script, it ends.
	p.goAhead()
	return p.scriptSet()
}

// scriptSet waits until the helper confirms the script.
func (p *Process) scriptSet() error {
	select {
	case err := <-p.warm.answer: // usually it has already answered
		return err
	default:
	}
	patience := time.AfterFunc(endWithin, p.destroy) // only for a helper that hangs
	defer patience.Stop()
	select {
	case err := <-p.warm.answer:
		return err
	case <-p.gone:
	}
	select {
	case err := <-p.warm.answer: // it answered before it ended
		return err
	default:
		return ErrGone
	}
}
