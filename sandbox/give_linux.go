package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toold/toold/sandbox/internal/helper"
)

// lookedFor is how long what a look at the world has found is believed.
const lookedFor = 20 * time.Millisecond

// blankShell is what a Process knows of a shell that was started without its script.
type blankShell struct {
	room   int
	world  *world
	answer chan error // whether the shell has it; sent once, by listen
	asked  bool       // Give was called

	looked time.Time     // when Give began to look at the world
	seen   chan struct{} // closed when it has; nil before
	same   bool          // what was found; to be read once seen is closed
}

func newBlankShell(c Command) *blankShell {
	return &blankShell{room: c.Room, world: lookAround(c), answer: make(chan error, 1)}
}

// answered takes the helper's word on the script.
func (b *blankShell) answered(e helper.Event) {
	var err error
	if e.Kind == helper.EventFailed {
		err = fmt.Errorf("%w: cannot %s: %w", ErrGone, e.Stage, failureOf(e)) // the helper ends then
	}
	if b == nil {
		return
	}
	select {
	case b.answer <- err:
	default: // nobody asked twice
	}
}

// look compares the world with what it was, beside what the caller does meanwhile.
func (b *blankShell) look() {
	b.looked, b.seen = time.Now(), make(chan struct{})
	// Ends when all is compared; Release or close waits.
	go func() {
		defer close(b.seen)
		b.same = b.world.same()
	}()
}

// unchanged waits for look. What it found holds for a moment: a sandbox that is made
// from the start is as old when its command begins.
func (b *blankShell) unchanged() bool {
	<-b.seen
	return b.same && (time.Since(b.looked) < lookedFor || b.world.same())
}

func (b *blankShell) close() {
	if b == nil {
		return
	}
	if b.seen != nil {
		<-b.seen
	}
	b.world.close()
}

// Give brings a shell that was started with Room its script, which does not run
// before Release. It does not wait, and is called at most once. An error means
// that the script does not fit or that there is no such shell.
func (p *Process) Give(script string) error {
	switch {
	case p.blank == nil || p.blank.asked:
		return errors.New("cannot give a script: the command has one")
	case len(script) > p.blank.room || strings.IndexByte(script, 0) >= 0:
		return fmt.Errorf("cannot give a script of %d bytes: at most %d and no NUL fit", len(script), p.blank.room)
	}
	p.blank.asked = true
	p.order(helper.Order{Kind: helper.OrderGive, Script: script})
	p.blank.look()
	return nil
}

// Why Release does not use a shell that waited, of which nothing has run.
var (
	ErrChanged = errors.New("cannot run a script: what the sandbox was made from has changed")
	ErrGone    = errors.New("cannot run a script: the shell that waited, or its sandbox, is gone")
)

// Release lets the command run that Hold has kept, or the script that Give has
// brought. It is called at most once. Once the command may start, the end of ctx does not
// end it: that is the caller's to do. An error means that nothing of it ran or ever
// will: for a held command it is that of Start; else ErrChanged when what the sandbox was made
// from had changed by the time of Give (a directory replaced, a hidden file that has come, a
// mount), or ErrGone when the shell is gone or could not be given its script. The caller then calls End.
//
// A shell that is killed in the moment of its release ends as one that was killed
// while it ran its script.
func (p *Process) Release(ctx context.Context) error {
	if p.blank == nil {
		p.goAhead()
		return p.hear(ctx)
	}
	if !p.blank.asked {
		return errors.New("cannot run a script: none was given")
	}
	if !p.blank.unchanged() {
		return ErrChanged
	}
	select {
	case <-p.exited:
		return ErrGone
	default:
	}
	// The helper carries out one order after the other: where giving fails, it ends.
	p.goAhead()
	return p.given()
}

// given waits for the helper's word that the shell has its script.
func (p *Process) given() error {
	select {
	case err := <-p.blank.answer: // as usual, the helper was quicker than the caller
		return err
	default:
	}
	patience := time.AfterFunc(endWithin, p.destroy) // only a helper that hangs needs it
	defer patience.Stop()
	select {
	case err := <-p.blank.answer:
		return err
	case <-p.gone:
	}
	select {
	case err := <-p.blank.answer: // it came before the end
		return err
	default:
		return ErrGone
	}
}
