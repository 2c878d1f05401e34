package sandbox

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toold/toold/sandbox/internal/helper"
)

// blankShell is what a Process knows of a shell that was started without its script.
type blankShell struct {
	room   int
	world  *world
	answer chan error // whether the shell has it; sent once, by listen
	asked  bool       // Give was called
}

func newBlankShell(c Command) *blankShell {
	return &blankShell{room: c.Room, world: lookAround(c), answer: make(chan error, 1)}
}

// answered takes the helper's word on the script.
func (b *blankShell) answered(e helper.Event) {
	var err error
	if e.Kind == helper.EventFailed {
		err = fmt.Errorf("cannot %s: %w", e.Stage, failureOf(e))
	}
	if b == nil {
		return
	}
	select {
	case b.answer <- err:
	default: // nobody asked twice
	}
}

func (b *blankShell) close() {
	if b != nil {
		b.world.close()
	}
}

// Give lets a shell that was started with Room run its script. It is called at
// most once. An error means that the script did not run and never will: it does
// not fit, what the sandbox was made from has changed (a folder replaced, a
// hidden file that has come since, a mount), or the shell is gone. The caller
// then calls End and starts another.
func (p *Process) Give(script string) error {
	switch {
	case p.blank == nil || p.blank.asked:
		return errors.New("cannot give a script: the command has one")
	case len(script) > p.blank.room || strings.IndexByte(script, 0) >= 0:
		return fmt.Errorf("cannot give a script of %d bytes: at most %d and no NUL fit", len(script), p.blank.room)
	case !p.blank.world.same():
		return errors.New("cannot give a script: what the sandbox was made from has changed")
	}
	p.blank.asked = true
	p.order(helper.Order{Kind: helper.OrderGive, Script: script})
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
		return errors.New("cannot give a script: the helper is gone")
	}
}
