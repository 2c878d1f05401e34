package chain

import (
	"fmt"
	"sync/atomic"
	"time"
)

// disk syncs the log and notes its end. One sync serves all callers that waited for their turn.
type disk struct {
	written atomic.Pointer[Mark] // last record in the file
	turn    chan struct{}        // capacity 1; guards the fields below
	file    File                 // current segment; earlier ones are synced
	synced  uint64               // number of the last synced record
	grown   bool                 // the file size is not synced
	failed  error                // why all later syncs fail
	note    note
	measure func(time.Duration, error) // Options.Synced; may be nil
}

func (d *disk) sync(number uint64) error {
	if d.synced >= number && !d.grown {
		return nil
	}
	if readOnly(d.file) { // the process that wrote it syncs and notes it
		return nil
	}
	if d.failed != nil {
		return d.failed
	}
	now := *d.written.Load()
	begun := time.Now()
	err := d.file.Sync()
	if d.measure != nil {
		d.measure(time.Since(begun), err)
	}
	if err != nil {
		return d.fail(err)
	}
	if err := d.note.write(latest, now); err != nil {
		return err
	}
	d.synced, d.grown = now.Number, false
	return nil
}

// resized makes the next sync include the file size.
func (d *disk) resized() {
	d.turn <- struct{}{}
	d.grown = true
	<-d.turn
}

// fail makes all later syncs fail with err. The caller has the turn.
func (d *disk) fail(err error) error {
	d.failed = fmt.Errorf("cannot bring the log to the disk, and nothing is run that it cannot remember: %w; look at the disk, then restart toold", err)
	return d.failed
}
