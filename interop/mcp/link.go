package mcp

import (
	"context"
	"sync"

	"github.com/toold/toold/client"
)

// link is the connection to the daemon, which is made again when it was lost.
type link struct {
	dial func(ctx context.Context, role string) (*client.Client, error)

	mu    sync.Mutex
	agent *client.Client // nil before the first
}

// get returns a connection that was open a moment ago.
func (l *link) get(ctx context.Context) (*client.Client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.agent != nil {
		select {
		case <-l.agent.Done():
			l.agent.Close()
			l.agent = nil
		default:
			return l.agent, nil
		}
	}
	agent, err := l.dial(ctx, "agent")
	if err != nil {
		return nil, err
	}
	l.agent = agent
	return agent, nil
}

func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.agent != nil {
		l.agent.Close()
	}
}
