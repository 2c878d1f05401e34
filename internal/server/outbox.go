package server

import "sync"

// The bounds of an outbox: messages, and bytes of replies. A client that sends
// without reading its answers is not read any further; one that does not read
// what others cause is given up.
const (
	maxReplies    = 256
	maxReplyBytes = 4 << 20 // a single reply may be larger
	maxPushed     = 16384
)

// outbox queues what is to be written, apart from live output. Replies are frames, whose bytes count; other
// messages are encoded when they are written, so that clients share them.
type outbox struct {
	poke func()

	mu     sync.Mutex
	room   sync.Cond // replies may be added again, or closed
	queue  []any     // frames are []byte
	held   int       // bytes of the frames in queue
	closed bool
}

func newOutbox(poke func()) *outbox {
	o := &outbox{poke: poke}
	o.room.L = &o.mu
	return o
}

// reply queues the answer to a frame of the client's own, waiting while it has
// too many unread ones. It does nothing once the outbox is closed.
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

// full reports whether replies have to wait. The caller holds mu.
func (o *outbox) full() bool { return len(o.queue) >= maxReplies || o.held >= maxReplyBytes }

// push queues what others cause. It never blocks.
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

// overflow gives the client up. Needs mu.
func (o *outbox) overflow() {
	o.closed = true
	o.room.Broadcast()
}

// take removes the oldest message. open is false when none will ever come.
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

// close ends the outbox: replies no longer wait, and nothing more is taken.
func (o *outbox) close() {
	o.mu.Lock()
	o.overflow()
	o.mu.Unlock()
	o.poke()
}
