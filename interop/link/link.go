// Package link keeps connections to a daemon, and replaces lost ones.
package link

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/message"
)

// maxOpen limits the connections of a Link, because a server may name any number of directories.
const maxOpen = 16

// A Link has one connection per key. Beyond maxOpen it closes those that make no call, the longest unused first. The
// caller must close it.
type Link struct {
	dial func(ctx context.Context, key string) (*client.Client, error)

	mu    sync.Mutex
	open  map[string]*connection
	clock int // counts uses
}

type connection struct {
	*client.Client
	calls int // that it makes
	used  int // the last time, by Link.clock
}

// New returns a Link that dials when it needs a connection. Keys are chosen by callers: a role or a directory.
func New(dial func(ctx context.Context, key string) (*client.Client, error)) *Link {
	return &Link{dial: dial, open: make(map[string]*connection)}
}

// Get returns the connection of a key. It dials if there is none or if it has ended.
func (l *Link) Get(ctx context.Context, key string) (*client.Client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, err := l.get(ctx, key)
	if err != nil {
		return nil, err
	}
	return c.Client, nil
}

// get is Get. The caller holds mu.
func (l *Link) get(ctx context.Context, key string) (*connection, error) {
	l.clock++
	if c := l.open[key]; c != nil {
		select {
		case <-c.Done():
			c.Close()
			delete(l.open, key)
		default:
			c.used = l.clock
			return c, nil
		}
	}
	if !l.makeRoom() {
		return nil, fmt.Errorf("calls run in %d directories already; wait for their results", maxOpen)
	}
	dialled, err := l.dial(ctx, key)
	if err != nil {
		return nil, err
	}
	c := &connection{Client: dialled, used: l.clock}
	l.open[key] = c
	return c, nil
}

// makeRoom closes the longest unused connection, if there are too many. It returns false if all make calls.
func (l *Link) makeRoom() bool {
	if len(l.open) < maxOpen {
		return true
	}
	oldest := ""
	for key, c := range l.open {
		if c.calls == 0 && (oldest == "" || c.used < l.open[oldest].used) {
			oldest = key
		}
	}
	idle := l.open[oldest]
	if idle == nil {
		return false
	}
	idle.Close()
	delete(l.open, oldest)
	return true
}

// begin is Get for a call. The caller must call end.
func (l *Link) begin(ctx context.Context, key string) (*connection, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, err := l.get(ctx, key)
	if err == nil {
		c.calls++
	}
	return c, err
}

func (l *Link) end(c *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.calls--
}

// Call makes a call over the connection of a key. If the connection is lost, it retries once with the same id, which
// the daemon runs only once. events is called before each try. The error is a *CallError.
func (l *Link) Call(ctx context.Context, key string, call client.Call, events func() client.Events) (ret message.ToolReturn, err error) {
	sent, again := false, false
	for range 2 {
		c, unreached := l.begin(ctx, key)
		if unreached != nil {
			if !sent {
				err = unreached
			}
			break
		}
		again = sent
		ret, err = c.Call(ctx, call, events())
		l.end(c)
		sent = sent || !errors.Is(err, client.ErrNotSent)
		if !errors.Is(err, client.ErrClosed) {
			break
		}
	}
	if err != nil {
		err = &CallError{call.ID, sent, again, err}
	}
	return ret, err
}

// A CallError says why a call has no return. Its text is for a model.
type CallError struct {
	ID    string
	Sent  bool // the daemon may have the call
	Again bool // the daemon may have had the call before the last try
	Err   error
}

func (e *CallError) Error() string {
	refused, isRefusal := errors.AsType[*message.Error](e.Err)
	switch {
	case isRefusal && !e.Again && refused.Type != message.InternalError:
		return "toold refused the call, nothing ran: " + refused.Message
	case !e.Sent:
		return fmt.Sprintf("toold cannot be reached, nothing ran: %v. Ask the user to start it: toold up", e.Err)
	}
	return fmt.Sprintf("toold was lost or failed while it may have run the call; what became of it is recorded: toold show %s (do not repeat it before you know): %v", display.Operand(e.ID), e.Err)
}

// Unwrap returns Err.
func (e *CallError) Unwrap() error { return e.Err }

func (l *Link) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.open {
		c.Close()
	}
	clear(l.open)
}
