package server

import "sync"

// The bounds of an outbox, in messages. A client that sends without reading its
// answers is not read any further; one that does not read what others cause is
// given up.
const (
	maxReplies = 256
	maxPushed  = 16384
)

// outbox holds what waits to be written besides live output, which is not
// queued but read from the calls' captures. Values are encoded when they are
// written, so that a large one shown to many clients is kept once.
type outbox struct {
	poke func()

	mu     sync.Mutex
	room   sync.Cond // replies may be added again, or closed
	queue  []any
	closed bool
}

func newOutbox(poke func()) *outbox {
	o := &outbox{poke: poke}
	o.room.L = &o.mu
	return o
}

// reply queues an answer to the client's own frame, waiting while it has too
// many unread ones.
func (o *outbox) reply(v any) {
	o.mu.Lock()
	for len(o.queue) >= maxReplies && !o.closed {
		o.room.Wait()
	}
	o.queue = append(o.queue, v)
	o.mu.Unlock()
	o.poke()
}

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

// overflow gives the client up; the writer sees it as a closed outbox. Called
// with mu held.
func (o *outbox) overflow() {
	o.closed = true
	o.room.Broadcast()
}

// take removes the oldest message. ok is false when there is none; open is false
// when nothing will ever come.
func (o *outbox) take() (v any, ok, open bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 || o.closed {
		return nil, false, !o.closed
	}
	v = o.queue[0]
	o.queue[0] = nil
	o.queue = o.queue[1:]
	if len(o.queue) < maxReplies {
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
