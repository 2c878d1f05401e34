package chain_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/must"
)

// The kernel says which pages of a file it has still to write.
func TestASyncedRecordIsNotInMemoryAlone(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	dir := directory(t, path)
	l := must.Get(chain.Open(chain.Options{Dir: dir, Notes: dir, Note: "head", Wait: time.Minute, SegmentBytes: 1 << 20, Seen: func(chain.Record) error { return nil }}))(t)
	f := must.Get(os.Open(filepath.Join(path, firstSegment)))(t)
	defer f.Close()
	pending := func() uint64 {
		var s unix.Cachestat_t
		if err := unix.Cachestat(uint(f.Fd()), &unix.CachestatRange{}, &s, 0); err != nil {
			t.Skip("this kernel does not say what is in memory alone:", err)
		}
		return s.Dirty + s.Writeback
	}
	before := uint64(0)
	for range 10 {
		must.Do(t, l.Update(func(b *chain.Batch) error {
			_, err := b.Append('m', []byte("x"))
			return err
		}))
		before += pending()
		must.Do(t, l.Sync(l.Last().Number))
		if left := pending(); left > 0 {
			t.Errorf("%d pages are left after a sync of record %d", left, l.Last().Number)
		}
	}
	must.Do(t, l.Close())
	if before == 0 {
		t.Skip("this file system has no disk, or says nothing of it")
	}
}
