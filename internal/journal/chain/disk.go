package chain

import (
	"fmt"
	"sync/atomic"
	"time"
)

// disk brings what was written to the disk, and notes it. Who comes while another one syncs
// waits for the turn, and mostly finds that a third one has synced for both.
type disk struct {
	written atomic.Pointer[Mark] // the last record in the file
	turn    chan struct{}        // capacity 1; full while somebody uses the fields below
	file    File                 // the current segment; those before are on the disk
	synced  uint64               // number of the last record that is on the disk
	grown   bool                 // the size on the disk may be another one
	failed  error                // why later ones cannot be
	note    note
	measure func(time.Duration, error) // Options.Synced
}

// sync is Log.Sync for a caller that has the turn.
func (d *disk) sync(number uint64) error {
	if d.synced >= number && !d.grown {
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

// resized has the next sync bring the size of the file to the disk.
func (d *disk) resized() {
	d.turn <- struct{}{}
	d.grown = true
	<-d.turn
}

// fail makes an error that of all later syncs.
func (d *disk) fail(err error) error {
	d.failed = fmt.Errorf("cannot bring the log to the disk, and nothing is run that it cannot remember: %w; look at the disk, then restart toold", err)
	return d.failed
}
