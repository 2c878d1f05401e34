package executor

import (
	"encoding/binary"
	"io"
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
)

// Writes to both streams are reported without end, and there is nothing to read: who
// writes discards it at once.
func TestReportsWithoutBytesHoldUpNothing(t *testing.T) {
	t.Parallel()
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close(); w.Close() })
		return r, w
	}
	out, _ := pipe()
	errs, _ := pipe()
	r := must.Get(newReader([]*stream{{file: out, to: io.Discard}, {file: errs, to: io.Discard}}))(t)
	defer r.poll.Close()
	from, to := pipe()
	var events []byte
	for n := range 256 {
		event := make([]byte, unix.SizeofInotifyEvent)
		binary.NativeEndian.PutUint32(event, uint32(n%2))
		binary.NativeEndian.PutUint32(event[4:], unix.IN_MODIFY)
		events = append(events, event...)
	}
	var feeder sync.WaitGroup
	// Ends when from is closed.
	feeder.Go(func() {
		for err := error(nil); err == nil; {
			_, err = to.Write(events)
		}
	})
	r.reports = &reports{fd: int(from.Fd()), wds: [2]int{0, 1}, tty: -1}
	r.merger = newMerger(true, r.pass)
	r.turn(true)
	if r.exact() {
		t.Error("the order is said to be exact")
	}
	if n := cap(r.merger.runs); n > 2*mergeRuns {
		t.Errorf("%d runs are held", n)
	}
	from.Close()
	feeder.Wait()
}
