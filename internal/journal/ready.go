package journal

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/toold/toold/internal/paths"
)

// health records why the journal cannot be written, if so.
type health struct {
	mu     sync.Mutex
	failed error     // error of the last write
	refuse error     // why no new call is recorded
	looked time.Time // when found was set
	found  error     // result of Journal.look
}

const (
	lookEvery = time.Second
	roomLeast = 512 << 10 // required free bytes
)

func (h *health) wrote(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed = err
}

// Ready returns why no call can be recorded now, or nil. It checks the files at most once a second, and retries after
// a failed write. A nil Journal is ready.
func (j *Journal) Ready() error {
	if j == nil {
		return nil
	}
	if j.write.tampered != nil {
		return j.write.tampered
	}
	h := &j.write.health
	h.mu.Lock()
	failed, found, old := errors.Join(h.failed, h.refuse), h.found, time.Since(h.looked) > lookEvery
	if old {
		h.looked = time.Now()
	}
	h.mu.Unlock()
	if !old {
		return errors.Join(failed, found)
	}
	found = j.look()
	if found == nil && failed != nil {
		_ = j.write.record(synced, func(b *batch) error { return b.append(kindTrial, &trialEvent{}) }) // recorded in health
	}
	if found == nil && !j.ballast.made() {
		found = j.write.record(soon, func(*batch) error { return j.ballast.restore() })
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.found = found
	return errors.Join(h.failed, h.refuse, found)
}

// Refuse makes the journal reject new calls with the error why; nil accepts them again. Recorded calls are not
// affected.
func (j *Journal) Refuse(why error) {
	h := &j.write.health
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refuse = why
}

// mayGrow returns why no new call may be recorded, or nil. The caller has the recorder's turn.
func (j *Journal) mayGrow() error {
	h := &j.write.health
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refuse != nil {
		return h.refuse
	}
	return j.ballast.restore()
}

func (j *Journal) look() error {
	w := j.write
	if err := w.present(); err != nil {
		return paths.Bare(err)
	}
	if err := w.log.Failure(); err != nil {
		return err
	}
	if err := writable(j.files.path); err != nil {
		return fmt.Errorf("the journal may not be written: %w", paths.Bare(err))
	}
	room, err := roomAt(j.files.path)
	switch {
	case err != nil:
		return fmt.Errorf("cannot tell whether there is room for the journal: %w", paths.Bare(err))
	case room < roomLeast:
		return fmt.Errorf("the disk is full: there is room for %d bytes", room)
	}
	return nil
}
