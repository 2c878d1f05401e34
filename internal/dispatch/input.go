package dispatch

import (
	"maps"
	"slices"
	"sync"

	"github.com/toold/toold/message"
	"github.com/toold/toold/tools"
)

// Limits of unread input per call, in bytes. Each piece counts pieceCost more.
const (
	maxUnread = 4 << 20
	pieceCost = 256
)

// inbox holds a running call's unread input.
type inbox struct {
	pieces chan tools.Input

	mu     sync.Mutex
	unread map[*piece]struct{}
	held   int
	closed bool
}

type piece struct {
	cost   int
	notify func(taken bool)
}

func newInbox() *inbox {
	return &inbox{pieces: make(chan tools.Input, 64), unread: make(map[*piece]struct{})}
}

// Input passes input to the running command without blocking. notify, unless nil, is called with true when the command
// has the data, or with false when it never will. It must not block.
func (c *Call) Input(in tools.Input, notify func(taken bool)) *message.Error {
	c.mu.Lock()
	running := c.capture != nil && !c.done
	c.mu.Unlock()
	if !running {
		return notRunning(c.ID)
	}
	p := &piece{cost: len(in.Data) + pieceCost, notify: notify}
	if e := c.input.add(c.ID, p); e != nil {
		return e
	}
	in.Taken = func(taken bool) { c.input.drop(p, taken) }
	select {
	case c.input.pieces <- in:
	default:
		c.input.forget(p)
		return full(c.ID)
	}
	if len(in.Data) == 0 {
		c.input.drop(p, true) // signals, sizes and EOF are not read by the command
	}
	return nil
}

func (b *inbox) add(id string, p *piece) *message.Error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return notRunning(id)
	case b.held > 0 && b.held+p.cost > maxUnread:
		return full(id)
	}
	b.unread[p] = struct{}{}
	b.held += p.cost
	return nil
}

func (b *inbox) forget(p *piece) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.unread[p]; !ok {
		return false
	}
	delete(b.unread, p)
	b.held -= p.cost
	return true
}

func (b *inbox) drop(p *piece, taken bool) {
	if b.forget(p) && p.notify != nil {
		p.notify(taken)
	}
}

// close notifies the senders of all unread input.
func (b *inbox) close() {
	b.mu.Lock()
	b.closed = true
	left := slices.Collect(maps.Keys(b.unread))
	b.mu.Unlock()
	for _, p := range left {
		b.drop(p, false)
	}
}

func full(id string) *message.Error {
	return about(id, message.NotRunning.Errorf("tool call %q does not read its input: up to %d bytes wait for it already, and this piece was thrown away; wait for input_taken before you send more", id, maxUnread))
}
