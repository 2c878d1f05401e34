package egress

import (
	"context"
	"sync"
)

// Slots limits the connections of several Servers; each takes six descriptors. Half of the slots are reserved for
// calls without connections. A call that has some gets another only while more slots are free, beyond that half, than
// it has.
type Slots struct {
	kept int

	mu      sync.Mutex
	free    int
	changed chan struct{} // closed when a slot becomes free
}

// NewSlots returns n slots.
func NewSlots(n int) *Slots { return &Slots{kept: n / 2, free: n, changed: make(chan struct{})} }

// take waits for a slot. It returns false if ctx ends first.
func (p *Slots) take(ctx context.Context, s *Server) bool {
	for {
		changed, ok := p.try(s)
		if ok {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// try takes a slot, or returns a channel that is closed when one may be free.
func (p *Slots) try(s *Server) (changed chan struct{}, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free == 0 || s.held > 0 && s.held >= min(p.free-p.kept, maxConnections) {
		return p.changed, false
	}
	p.free--
	s.held++
	return nil, true
}

func (p *Slots) leave(s *Server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free++
	s.held--
	close(p.changed)
	p.changed = make(chan struct{})
}
