package codex

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/toold/toold/internal/must"
)

// dialled returns an initialized connection that keeps at most so many bytes, and what it writes.
func dialled(t *testing.T, s *Server, most int64) (c *Connection, kept *int64, written chan response) {
	t.Helper()
	kept, written = new(int64), make(chan response, 100)
	write := func(frame []byte) error {
		var r response
		must.Do(t, json.Unmarshal(frame, &r))
		written <- r
		return nil
	}
	c = s.Connect("agent", write, func(bytes int64) bool {
		if bytes > most {
			return false
		}
		*kept = bytes
		return true
	})
	c.Accept([]byte(`{"id":0,"method":"initialize"}`))
	return c, kept, written
}

// What requests take while they are not answered is bounded, not only their number.
func TestLargeRequestsAreBoundedTogether(t *testing.T) {
	t.Parallel()
	const size = 1000
	c, kept, written := dialled(t, New(Options{Linger: -1}), 2*size+size/2)
	frame := func(id string) []byte {
		f := fmt.Sprintf(`{"id":%s,"method":"process/read","params":{"processId":"none","waitMs":1,"":""}}`, id)
		return []byte(f + strings.Repeat(" ", size-len(f)))
	}
	for id := range 3 {
		c.Accept(frame(fmt.Sprint(id + 1)))
	}
	c.Accept(frame(`"` + strings.Repeat("i", maxRequestID) + `"`))
	c.handlers.Wait()
	ending := make(chan struct{})
	close(ending)
	c.Run(ending)
	if *kept != 0 {
		t.Errorf("%d bytes are kept after the end", *kept)
	}
	close(written)
	for r := range written {
		want := map[string]string{"0": "", "1": "unknown process", "2": "unknown process", "3": "too large together", "-1": "an id of at most 256 bytes"}[string(r.ID)]
		if got := r.Error; want == "" && got != nil || want != "" && (got == nil || !strings.Contains(got.Message, want)) {
			t.Errorf("%s was answered with %+v, want %q", r.ID, got, want)
		}
	}
}

// Contents are in memory until they are written. All connections of a client together have few.
func TestFewContentsAreHeldForAClient(t *testing.T) {
	t.Parallel()
	s := New(Options{Linger: -1})
	var all []*Connection
	for range maxContents / maxLarge {
		c, _, _ := dialled(t, s, 0)
		for range maxLarge {
			c.takeContentSlot()
		}
		all = append(all, c)
	}
	take := func() bool {
		c, _, _ := dialled(t, s, 0)
		taken := make(chan bool)
		go func() { taken <- c.takeContentSlot() }()
		c.Close() // a free slot is as good as the end: the test tries often enough
		return <-taken
	}
	for range 100 {
		if take() {
			t.Fatal("one content more is held")
		}
	}
	other := s.Connect("other", nil, nil)
	if !other.takeContentSlot() {
		t.Error("another client gets none")
	}
	all[0].leave() // what it has not written is dropped
	last, _, _ := dialled(t, s, 0)
	for range maxLarge {
		if !last.takeContentSlot() {
			t.Error("the contents of an ended connection are held")
		}
	}
	last.releaseContent()
	all[1].releaseContent()
	if n := len(last.shared); n != maxContents-2 {
		t.Errorf("%d contents are held, want %d", n, maxContents-2)
	}
}

// A client may send and leave at once: what is read after the end begins nothing, and holds no session.
func TestNothingBeginsOnceAConnectionHasEnded(t *testing.T) {
	t.Parallel()
	s := New(Options{Linger: -1})
	frame := []byte(`{"id":1,"method":"process/read","params":{"processId":"none"}}`)
	for range 200 {
		c, _, _ := dialled(t, s, 1<<20)
		var all sync.WaitGroup
		all.Go(func() {
			for range maxRequests {
				c.Accept(frame)
			}
		})
		all.Go(c.leave)
		all.Wait()
		c.handlers.Wait()
	}
	late := s.Connect("agent", nil, func(int64) bool { return true })
	late.leave()
	late.Accept([]byte(`{"id":0,"method":"initialize"}`))
	for id, ss := range s.sessions {
		if ss.detachedAt().IsZero() {
			t.Errorf("the session %s has a connection", id)
		}
	}
}
