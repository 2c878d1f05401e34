package server

import (
	"slices"
	"sync"

	"github.com/toold/toold/message"
)

// Limits of an outbox. At maxReplies or maxReplyBytes the server stops reading from the client; at maxPushed it
// disconnects the client.
const (
	maxReplies    = 256
	maxReplyBytes = 4 << 20 // a single reply may be larger
	maxPushed     = 16384
)

// outbox queues all messages except live output. Replies are encoded frames, and their bytes are counted; other
// messages are encoded when written, so that clients share them.
type outbox struct {
	poke func()

	mu     sync.Mutex
	room   sync.Cond // signals free space and close
	queue  []any     // replies are []byte
	held   int       // bytes of the frames in queue
	asked  int       // bytes of the approval requests in queue
	closed bool
}

func newOutbox(poke func()) *outbox {
	o := &outbox{poke: poke}
	o.room.L = &o.mu
	return o
}

// reply queues the answer to a client's frame. It blocks while too many are unread, and does nothing after close.
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

// push queues a message that is not a reply. It never blocks.
func (o *outbox) push(v any) {
	o.mu.Lock()
	if len(o.queue) < maxPushed {
		o.queue = append(o.queue, v)
		o.asked += askedBytes(v)
	} else {
		o.overflow()
	}
	o.mu.Unlock()
	o.poke()
}

// withdraw drops an unread approval request that waits no longer, if unread ones take much memory. Those that wait are
// limited by the Dispatcher.
func (o *outbox) withdraw(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.asked <= maxReplyBytes {
		return
	}
	o.queue = slices.DeleteFunc(o.queue, func(v any) bool {
		r, ok := v.(message.ApprovalRequest)
		if !ok || r.ID != id {
			return false
		}
		o.asked -= askedBytes(r)
		return true
	})
}

// askedBytes estimates the memory of an approval request. It returns 0 for other messages.
func askedBytes(v any) int {
	const line = 128 // of an effect, besides its texts
	r, _ := v.(message.ApprovalRequest)
	n := len(r.ToolCall.Arguments) + len(r.Preview.Text) + len(r.Preview.Diff)
	for _, e := range r.Effects {
		n += len(e.Text) + len(e.Source) + line
	}
	return n
}

// overflow disconnects the client. The caller holds mu.
func (o *outbox) overflow() {
	o.closed = true
	o.room.Broadcast()
}

// take removes the oldest message. open is false after close.
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
	o.asked -= askedBytes(v)
	if !o.full() {
		o.room.Broadcast()
	}
	return v, true, true
}

// close drops all messages. Replies no longer block.
func (o *outbox) close() {
	o.mu.Lock()
	o.overflow()
	o.mu.Unlock()
	o.poke()
}
