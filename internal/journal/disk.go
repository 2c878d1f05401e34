package journal

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
)

// disk brings what was committed to the disk. SQLite does not: it would sync inside
// of a commit, while nobody else can write, and by fsync(2), which a file system
// answers by writing the times of the file too. What it writes at a commit stands in
// the write-ahead log alone, and that is all that has to be synced; before it copies
// the log into the database it syncs by itself (synchronous = NORMAL).
//
// Who comes while another one syncs waits for the turn, and mostly finds that a third
// one has synced for both.
type disk struct {
	committed atomic.Int64         // transactions
	sealed    atomic.Pointer[note] // the seal of the last one that had any
	turn      chan struct{}        // capacity 1; full while somebody uses the fields below
	log       *os.File             // nil where the database has none, and syncs each commit itself
	opened    os.FileInfo          // of log; nil without one
	synced    int64                // transactions that are on the disk
	failed    error                // why later ones cannot be
	note      *os.File             // head; nil where it is left as it is
}

// open finds the write-ahead log of an open database, which has it for as long as
// it is open.
func (d *disk) open(database string) (found bool, err error) {
	d.log, err = os.OpenFile(database+"-wal", os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		d.opened, err = d.log.Stat()
	}
	return err == nil, err
}

// sync returns when the first transactions, so many, are on the disk. Once that has
// failed it always fails: what the kernel could not write it forgets, and says so once
// (fsync(2), EIO).
func (d *disk) sync(transactions int64) error {
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	if d.synced >= transactions {
		return nil
	}
	if d.failed != nil {
		return d.failed
	}
	now, sealed := d.committed.Load(), d.sealed.Load()
	if d.log == nil {
		d.synced = now
		return d.write(sealed)
	}
	if err := syncData(d.log); err != nil {
		d.failed = fmt.Errorf("cannot bring the journal to the disk, and nothing is run that it cannot remember: %w; look at the disk, then restart toold", err)
		return d.failed
	}
	d.synced = now
	return d.write(sealed)
}

// write notes a seal that is on the disk. The note itself may come there later: an older
// one fits too.
func (d *disk) write(sealed *note) error {
	if d.note == nil || sealed == nil {
		return nil
	}
	if _, err := d.note.WriteAt([]byte(sealed.text()), 0); err != nil {
		return fmt.Errorf("cannot note the end of the journal: %w", err)
	}
	return nil
}

// failure is why nothing can be brought to the disk any more; nil while it can.
func (d *disk) failure() error {
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	return d.failed
}

// close lets the log go.
func (d *disk) close() error {
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	var errs []error
	for _, f := range []*os.File{d.log, d.note} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}
