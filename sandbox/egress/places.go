package egress

import (
	"context"
	"sync"
)

// Places are the connections that several Servers may carry, six descriptors each. Half are kept
// for calls that have none; of the others a call gets one only while more are free than it has.
type Places struct {
	kept int

	mu      sync.Mutex
	free    int
	changed chan struct{} // closed when a place becomes free
}

// NewPlaces returns n places.
func NewPlaces(n int) *Places { return &Places{kept: n / 2, free: n, changed: make(chan struct{})} }

// take waits for a place for s. It is false when ctx ends first.
func (p *Places) take(ctx context.Context, s *Server) bool {
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

// try takes a place if s may have another, or else returns what is closed when that
// may have changed.
func (p *Places) try(s *Server) (changed chan struct{}, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free == 0 || s.held > 0 && s.held >= min(p.free-p.kept, maxConnections) {
		return p.changed, false
	}
	p.free--
	s.held++
	return nil, true
}

func (p *Places) leave(s *Server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free++
	s.held--
	close(p.changed)
	p.changed = make(chan struct{})
}
