package server

import (
	"slices"

	"github.com/toold/toold/internal/dispatch"
)

func (ss *session) follow(w *dispatch.Watcher) { ss.followFrom(w, position{}, func(*feed) {}) }

func (ss *session) followPart(w *dispatch.Watcher, it *item) {
	ss.followFrom(w, position{}, func(f *feed) { f.items = append(f.items, it) })
}

// feed returns the session's feed of a call, or nil. The caller holds mu.
func (ss *session) feed(c *dispatch.Call) *feed {
	for _, f := range ss.feeds {
		if f.watcher.Call() == c {
			return f
		}
	}
	return nil
}

func (ss *session) follows(c *dispatch.Call) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.feed(c) != nil
}

// show sends a background call's events and output from the beginning. The client that started or rejoined it gets
// them.
func (ss *session) show(c *dispatch.Call) {
	ss.follow(c.Watch(ss.poke))
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if f := ss.feed(c); f != nil {
		f.shown = true
	}
}

// visible reports whether the client receives a feed's events and output. For background calls it must have asked.
func (ss *session) visible(f *feed) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return f.shown || f.watcher.Call().BackgroundOf() == nil
}

func (ss *session) unfollow(done *feed) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.feeds = slices.DeleteFunc(ss.feeds, func(f *feed) bool { return f == done })
	notify(ss.freed)
}

func (ss *session) following() []*feed {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return slices.Clone(ss.feeds)
}

// Limits of the answers that wait for a client to read them. Beyond them the server stops reading from the client.
const (
	maxOwed      = 256 // answers beyond calls_per_connection, which are refusals
	maxOwedBytes = 32 << 20
)

// unanswered returns the number of calls without an answer, where each part of an item counts, and the size of the
// ended calls whose answers wait only for the client.
func (ss *session) unanswered() (calls, bytes int) {
	ss.mu.Lock()
	feeds := slices.Clone(ss.feeds)
	for _, it := range ss.items {
		calls += len(it.sub.Request.Calls) - 1
	}
	ss.mu.Unlock()
	for _, f := range feeds {
		if c := f.watcher.Call(); c.BackgroundOf() == nil {
			calls++
			bytes += c.MemoryBytes()
		}
	}
	return calls, bytes
}

// awaitRoom waits until the client has read enough answers. It returns the number of unanswered calls.
func (ss *session) awaitRoom() int {
	for {
		calls, bytes := ss.unanswered()
		if calls < ss.srv.opt.CallsPerConnection+maxOwed && bytes < maxOwedBytes {
			return calls
		}
		select {
		case <-ss.freed:
		case <-ss.written:
			return calls
		}
	}
}

func (ss *session) detachAll() {
	ss.mu.Lock()
	ss.left = true
	items := ss.items
	ss.mu.Unlock()
	ss.srv.dropItems(items...)
	for _, f := range ss.following() {
		f.watcher.Detach()
	}
}
