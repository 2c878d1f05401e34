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
	committed atomic.Int64  // transactions
	turn      chan struct{} // capacity 1; full while somebody uses the fields below
	log       *os.File      // nil where the database has none, and syncs each commit itself
	synced    int64         // transactions that are on the disk
	failed    error         // why later ones cannot be
}

// open finds the write-ahead log of an open database, which has it for as long as
// it is open.
func (d *disk) open(database string) (found bool, err error) {
	d.log, err = os.OpenFile(database+"-wal", os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// sync returns when the first transactions, so many, are on the disk. Once that has
// failed it always fails: what the kernel could not write it forgets, and says so once
// (fsync(2), EIO).
func (d *disk) sync(transactions int64) error {
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	if d.synced >= transactions || d.log == nil {
		return nil
	}
	if d.failed != nil {
		return d.failed
	}
	now := d.committed.Load()
	if err := syncData(d.log); err != nil {
		d.failed = fmt.Errorf("cannot bring the journal to the disk, and nothing is run that it cannot remember: %w; look at the disk, then restart toold", err)
		return d.failed
	}
	d.synced = now
	return nil
}

// close lets the log go.
func (d *disk) close() error {
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	if d.log == nil {
		return nil
	}
	return d.log.Close()
}
