package server

import (
	"slices"

	"github.com/toold/toold/internal/dispatch"
)

func (ss *session) follow(w *dispatch.Watcher) { ss.followFrom(w, position{}, func(*feed) {}) }

// followPart is follow for the running part of an item.
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

// follows reports whether the session has still to write a call's return.
func (ss *session) follows(c *dispatch.Call) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.feed(c) != nil
}

// show sends a background call's events and output from the beginning, to the client that began or
// rejoined it.
func (ss *session) show(c *dispatch.Call) {
	ss.follow(c.Watch(ss.poke))
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if f := ss.feed(c); f != nil {
		f.shown = true
	}
}

// visible reports whether the client receives a feed's events and output: always for its own calls,
// on request for background calls.
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

// Bounds of the answers that wait for a client to read them. The client is not read further.
const (
	maxOwed      = 256 // answers beyond calls_per_connection: refusals
	maxOwedBytes = 32 << 20
)

// unanswered counts the calls without an answer, each part of an item, and the bytes of those that have ended
// and wait for the client alone: parts of an item wait for the others.
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

// awaitRoom waits until the client has read enough answers, and returns how many calls are unanswered.
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
