package mcp

import (
	"context"
	"sync"

	"github.com/toold/toold/client"
)

// link has the connections to the daemon, by role, and makes them again when they were lost.
type link struct {
	dial func(ctx context.Context, role string) (*client.Client, error)

	mu   sync.Mutex
	open map[string]*client.Client // by role
}

// get returns a connection that was open a moment ago.
func (l *link) get(ctx context.Context, role string) (*client.Client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.open[role]; c != nil {
		select {
		case <-c.Done():
			c.Close()
			delete(l.open, role)
		default:
			return c, nil
		}
	}
	c, err := l.dial(ctx, role)
	if err != nil {
		return nil, err
	}
	l.open[role] = c
	return c, nil
}

func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.open {
		c.Close()
	}
}
