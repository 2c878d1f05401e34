// Package link keeps connections to a daemon and makes them again when they were lost.
package link

import (
	"context"
	"errors"
	"sync"

	"github.com/toold/toold/client"
	"github.com/toold/toold/message"
)

// A Link has one connection for each key. It must be closed.
type Link struct {
	dial func(ctx context.Context, key string) (*client.Client, error)

	mu   sync.Mutex
	open map[string]*client.Client
}

// New returns a Link that dials when a connection is first asked for. What a key says is
// for dial to know: a role, or a directory.
func New(dial func(ctx context.Context, key string) (*client.Client, error)) *Link {
	return &Link{dial: dial, open: make(map[string]*client.Client)}
}

// Get returns a connection that was open a moment ago.
func (l *Link) Get(ctx context.Context, key string) (*client.Client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.open[key]; c != nil {
		select {
		case <-c.Done():
			c.Close()
			delete(l.open, key)
		default:
			return c, nil
		}
	}
	c, err := l.dial(ctx, key)
	if err != nil {
		return nil, err
	}
	l.open[key] = c
	return c, nil
}

// Call makes a call by the connection of a key. When that is lost it asks once more by the same
// id: the daemon runs a call once. events is called before each try. sent reports whether the
// daemon may have the call.
func (l *Link) Call(ctx context.Context, key string, call client.Call, events func() client.Events) (ret message.ToolReturn, sent bool, err error) {
	for range 2 {
		c, unreached := l.Get(ctx, key)
		if unreached != nil {
			if !sent {
				err = unreached
			}
			break
		}
		ret, err = c.Call(ctx, call, events())
		sent = sent || !errors.Is(err, client.ErrNotSent)
		if !errors.Is(err, client.ErrClosed) {
			break
		}
	}
	return ret, sent, err
}

// Close closes the connections.
func (l *Link) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.open {
		c.Close()
	}
	clear(l.open)
}
