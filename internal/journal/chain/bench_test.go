package chain_test

import (
	"testing"
	"time"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/must"
)

// BenchmarkCycle is what a call's life costs in the log: a record that is synced
// before it runs, and three that are not.
func BenchmarkCycle(b *testing.B) {
	path := b.TempDir()
	dir := must.Get(chain.Directory(path))(b)
	defer dir.Close()
	l := must.Get(chain.Open(chain.Options{Dir: dir, Notes: dir, Note: "head", SegmentBytes: 64 << 20, Wait: time.Minute, Seen: func(chain.Record) error { return nil }}))(b)
	body := make([]byte, 500)
	add := func() {
		must.Do(b, l.Update(func(batch *chain.Batch) error {
			_, err := batch.Append('m', body)
			return err
		}))
	}
	for b.Loop() {
		add()
		must.Do(b, l.Sync(l.Last().Number))
		add()
		add()
		add()
	}
	must.Do(b, l.Close())
}
