package chain_test

import (
	"testing"
	"time"

	"github.com/toold/toold/internal/journal/chain"
)

// BenchmarkCycle is what a call's life costs in the log: a record that is synced
// before it runs, and three that are not.
func BenchmarkCycle(b *testing.B) {
	path := b.TempDir()
	dir, err := chain.Directory(path)
	if err != nil {
		b.Fatal(err)
	}
	defer dir.Close()
	l, err := chain.Open(chain.Options{Dir: dir, Notes: dir, Note: "head", SegmentBytes: 64 << 20, Wait: time.Minute, Seen: func(chain.Record) error { return nil }})
	if err != nil {
		b.Fatal(err)
	}
	body := make([]byte, 500)
	add := func() {
		err := l.Update(func(batch *chain.Batch) error {
			_, err := batch.Append('m', body)
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		add()
		if err := l.Sync(l.Last().Number); err != nil {
			b.Fatal(err)
		}
		add()
		add()
		add()
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}
