package server

import "sync"

// Bounds of an outbox: messages, and bytes of replies. A client that sends without reading its answers is not
// read any further; one that does not read events is disconnected.
const (
	maxReplies    = 256
	maxReplyBytes = 4 << 20 // a single reply may be larger
	maxPushed     = 16384
)

// outbox queues messages, apart from live output. Replies are encoded frames, whose bytes count; other messages
// are encoded when they are written, so that clients share them.
type outbox struct {
	poke func()

	mu     sync.Mutex
	room   sync.Cond // signals that replies may be added, or close
	queue  []any     // frames are []byte
	held   int       // bytes of the frames in queue
	closed bool
}

func newOutbox(poke func()) *outbox {
	o := &outbox{poke: poke}
	o.room.L = &o.mu
	return o
}

// reply queues the answer to a client's frame, and blocks while too many are unread. It does nothing once the
// outbox is closed.
func (o *outbox) reply(v any) {
	o.mu.Lock()
	for o.full() && !o.closed {
		o.room.Wait()
	}
	if !o.closed {
		o.queue = append(o.queue, v)
		if frame, ok := v.([]byte); ok {
			o.held += len(frame)
		}
	}
	o.mu.Unlock()
	o.poke()
}

// full reports whether replies must wait. The caller holds mu.
func (o *outbox) full() bool { return len(o.queue) >= maxReplies || o.held >= maxReplyBytes }

// push queues a message that is no reply. It never blocks.
func (o *outbox) push(v any) {
	o.mu.Lock()
	if len(o.queue) < maxPushed {
		o.queue = append(o.queue, v)
	} else {
		o.overflow()
	}
	o.mu.Unlock()
	o.poke()
}

// overflow disconnects the client. The caller holds mu.
func (o *outbox) overflow() {
	o.closed = true
	o.room.Broadcast()
}

// take removes the oldest message. open is false if none will ever come.
func (o *outbox) take() (v any, ok, open bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 || o.closed {
		return nil, false, !o.closed
	}
	v = o.queue[0]
	o.queue[0] = nil
	o.queue = o.queue[1:]
	if frame, ok := v.([]byte); ok {
		o.held -= len(frame)
	}
	if !o.full() {
		o.room.Broadcast()
	}
	return v, true, true
}

// close closes the outbox: replies no longer wait, and messages are dropped.
func (o *outbox) close() {
	o.mu.Lock()
	o.overflow()
	o.mu.Unlock()
	o.poke()
}
