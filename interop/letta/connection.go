package letta

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/internal/strict"
)

// The server pings every 30 s.
const (
	dialWithin   = 10 * time.Second
	silentWithin = 100 * time.Second
	writeWithin  = 30 * time.Second
	answerWithin = 30 * time.Second
	maxFrame     = 100 << 20 // bytes; the limit of the server's WebSocket library
)

// connection is one WebSocket connection. Its methods, except read, are safe for concurrent use.
type connection struct {
	ws *websocket.Conn

	mu      sync.Mutex // also serializes writes to ws
	next    int
	waiting map[string]chan frame
	gone    bool // no more responses will arrive
}

func dial(ctx context.Context, url, token string) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	header := http.Header{}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	ws, resp, err := websocket.DefaultDialer.DialContext(ctx, url, header)
	if err != nil {
		if resp != nil && (resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden) {
			return nil, fmt.Errorf("%w: %s answered %s; give its token by --token-file", errRefused, url, resp.Status)
		}
		return nil, fmt.Errorf("cannot reach the App Server at %s: %w; start it with `letta server --listen %s`", url, err, url)
	}
	ws.SetReadLimit(maxFrame)
	ws.SetReadDeadline(time.Now().Add(silentWithin))
	ws.SetPingHandler(func(text string) error {
		ws.SetReadDeadline(time.Now().Add(silentWithin))
		return ws.WriteControl(websocket.PongMessage, []byte(text), time.Now().Add(writeWithin))
	})
	return &connection{ws: ws, waiting: make(map[string]chan frame)}, nil
}

// read returns the next frame that is not a response. Only one goroutine may call it.
func (c *connection) read() (frame, error) {
	for {
		_, text, err := c.ws.ReadMessage()
		if err != nil {
			c.abandon()
			return frame{}, err
		}
		c.ws.SetReadDeadline(time.Now().Add(silentWithin))
		var f frame
		switch err := strict.Unmarshal(text, &f); {
		case errors.Is(err, strict.ErrTwice):
			c.abandon()
			return frame{}, fmt.Errorf("%w: it sent a message that readers understand differently: %w", errRefused, err)
		case err != nil:
			continue // a frame of another kind
		}
		if !c.deliver(f) {
			return f, nil
		}
	}
}

// deliver gives a response to the request that waits for it. It returns false for any other frame.
func (c *connection) deliver(f frame) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, ok := c.waiting[f.RequestID]
	if ok {
		delete(c.waiting, f.RequestID)
		w <- f
	}
	return ok
}

// abandon ends all requests that wait, and later ones.
func (c *connection) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	for _, w := range c.waiting {
		close(w)
	}
	clear(c.waiting)
}

var errLost = errors.New("the connection was lost")

// request sends a frame and returns the response. It sets request_id in f.
func (c *connection) request(ctx context.Context, f fields) (frame, error) {
	w := make(chan frame, 1)
	c.mu.Lock()
	if c.gone {
		c.mu.Unlock()
		return frame{}, errLost
	}
	c.next++
	id := fmt.Sprintf("toold-%d", c.next)
	f["request_id"] = id
	c.waiting[id] = w
	err := c.write(f)
	c.mu.Unlock()
	if err != nil {
		return frame{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	select {
	case r, ok := <-w:
		switch {
		case !ok:
			return frame{}, errLost
		case r.Success != nil && !*r.Success:
			return r, fmt.Errorf("%v: the server says: %s", f["type"], r.Error)
		}
		return r, nil
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, id)
		return frame{}, fmt.Errorf("the server did not answer %v", f["type"])
	}
}

func (c *connection) send(f fields) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.write(f)
}

// write sends a frame. The caller holds mu.
func (c *connection) write(f fields) error {
	c.ws.SetWriteDeadline(time.Now().Add(writeWithin))
	return c.ws.WriteJSON(f)
}
