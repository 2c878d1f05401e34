// Package client connects to a toold daemon: it makes tool calls, follows their output, and decides on approval
// requests.
//
// It does not reconnect. To get the output or return of a call after a reconnect, repeat the call with the same id: no
// id runs twice.
package client

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/internal/loopback"
	"github.com/toold/toold/message"
)

const (
	maxFrame     = 256 << 20 // enough for a thousand messages
	pingPeriod   = 30 * time.Second
	silence      = 3 * pingPeriod // after which the connection is given up
	writeTimeout = 30 * time.Second
	maxBuffered  = 256 // frames per waiter before the reader blocks
)

// Errors for errors.Is.
var (
	// ErrUnreachable means that nothing answers at the address. Errors of Dial wrap it.
	ErrUnreachable = errors.New("no daemon answers")
	// ErrClosed means that the connection has ended. Requests may still have an effect.
	ErrClosed = errors.New("the connection to toold is closed")
	// ErrNotSent means, in addition to ErrClosed, that a request was not sent completely and has no effect.
	ErrNotSent = errors.New("nothing was sent")
)

// Options are the parameters of Dial.
type Options struct {
	URL     string                                  // such as "ws://127.0.0.1:7717/v1/ws"
	Socket  string                                  // Unix socket, instead of the host in URL, which may then be ""
	Dial    func(context.Context) (net.Conn, error) // replaces dialing; URL and Socket may then be ""
	TLS     *tls.Config                             // for wss://; nil: the system's authorities
	Token   string
	Name    string // of the client program, for the journal
	Version string
	Silent  bool // without live output
	Binary  bool // live output in binary frames, which is cheaper

	// Workspace is an absolute path that selects the workspace of calls; "": the daemon's default.
	Workspace string
}

// A Client is one connection. It is safe for concurrent use.
type Client struct {
	conn    *websocket.Conn
	hello   message.HelloAck
	closing chan struct{} // closed by Close
	ended   chan struct{} // closed when the reader has returned
	loops   sync.WaitGroup

	channels map[uint32]*channel // by number; only the reader uses it

	writing sync.Mutex // serializes writes; never held together with mu

	mu            sync.Mutex
	waiters       map[*waiter]struct{}
	unclaimedEnds []*frame // of background calls; no waiter matched them
	closed        bool
	err           error // why the reader ended; set before ended is closed
}

// A waiter receives matching frames in order.
type waiter struct {
	match  func(*frame) bool
	frames chan *frame
	gone   chan struct{} // closed when the receiver has left
}

// A frame is a frame of the daemon, with the fields by which waiters match.
type frame struct {
	Type      string `json:"message_type"`
	ID        string `json:"id"`
	CallID    string `json:"tool_call_id"`
	AgentID   string `json:"agent_id"`
	RequestID string `json:"request_id"`
	Nonce     string `json:"nonce"`
	Channel   uint32 `json:"channel"`
	raw       []byte
	output    *output             // of a binary frame, which has no raw
	returned  *message.ToolReturn // decoded tool_return_message
}

func (f *frame) decode(v any) error {
	if err := json.Unmarshal(f.raw, v); err != nil {
		return fmt.Errorf("cannot read a %s of the daemon: %v", f.Type, err)
	}
	return nil
}

// Dial connects and waits for the daemon's greeting. ctx applies only to Dial. The caller must Close the Client.
func Dial(ctx context.Context, o Options) (*Client, error) {
	url := o.URL
	if url == "" && (o.Socket != "" || o.Dial != nil) {
		url = "ws://localhost/v1/ws"
	}
	dialer := websocket.Dialer{HandshakeTimeout: 30 * time.Second, TLSClientConfig: o.TLS, NetDialContext: loopback.Dial}
	switch {
	case o.Dial != nil:
		dialer.NetDialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return o.Dial(ctx) }
	case o.Socket != "":
		dialer.NetDialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", o.Socket)
		}
	}
	header := http.Header{}
	if o.Token != "" {
		header.Set("Authorization", "Bearer "+o.Token)
	}
	conn, response, err := dialer.DialContext(ctx, url, header)
	if err != nil {
		return nil, dialError(url, response, err)
	}
	c := &Client{
		conn: conn, closing: make(chan struct{}), ended: make(chan struct{}), waiters: map[*waiter]struct{}{}, channels: map[uint32]*channel{},
	}
	greeting := c.addWaiter(func(f *frame) bool { return f.Type == "hello_ack" || f.Type == "error_message" })
	// They end with the connection; Close waits.
	c.loops.Go(c.read)
	c.loops.Go(c.ping)
	if err := c.greet(ctx, o, greeting); err != nil {
		c.Close()
		if refused, is := errors.AsType[*message.Error](err); is {
			return nil, refused
		}
		return nil, fmt.Errorf("cannot greet toold at %s: %w", url, err)
	}
	return c, nil
}

func dialError(url string, response *http.Response, err error) error {
	if response == nil {
		return fmt.Errorf("cannot connect to toold at %s: %w: %w", url, ErrUnreachable, err)
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, 1024))
	switch response.StatusCode {
	case http.StatusUnauthorized:
		return fmt.Errorf("cannot connect to toold at %s: the token is missing or wrong", url)
	case http.StatusForbidden:
		return fmt.Errorf("cannot connect to toold at %s: the daemon refuses this host or origin: %s", url, strings.TrimSpace(string(body)))
	}
	return fmt.Errorf("cannot connect to toold at %s: %s: %s", url, response.Status, strings.TrimSpace(string(body)))
}

func (c *Client) greet(ctx context.Context, o Options, w *waiter) error {
	output := "delta"
	switch {
	case o.Silent:
		output = "none"
	case o.Binary:
		output = "binary"
	}
	hello := message.Hello{MessageType: "hello", Protocol: 1, Output: output, Workspace: o.Workspace}
	hello.Client.Name, hello.Client.Version = o.Name, o.Version
	f, err := c.roundTrip(ctx, w, hello)
	if err != nil {
		return err
	}
	return f.decode(&c.hello)
}

// Hello returns the daemon's greeting.
func (c *Client) Hello() message.HelloAck { return c.hello }

// Done returns a channel that is closed when the connection has ended.
func (c *Client) Done() <-chan struct{} { return c.ended }

// Close ends the connection and waits for the Client's goroutines. Waiting methods return ErrClosed. Calls continue
// for limits.linger. Close may be repeated.
func (c *Client) Close() error {
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	c.mu.Unlock()
	if first {
		close(c.closing)
		farewell := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
		c.conn.WriteControl(websocket.CloseMessage, farewell, time.Now().Add(time.Second))
		c.conn.Close()
	}
	c.loops.Wait()
	return nil
}

// ping makes an idle daemon answer, whatever its limits.ping.
func (c *Client) ping() {
	ticker := time.Tick(pingPeriod)
	for {
		select {
		case <-ticker:
			c.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeTimeout)) // reading reports a failure
		case <-c.ended:
			return
		}
	}
}

func (c *Client) read() {
	defer close(c.ended)
	defer c.conn.Close()
	c.conn.SetReadLimit(maxFrame)
	alive := func() { c.conn.SetReadDeadline(time.Now().Add(silence)) } // reading reports a failure
	alive()
	c.conn.SetPongHandler(func(string) error {
		alive()
		return nil
	})
	pong := c.conn.PingHandler()
	c.conn.SetPingHandler(func(data string) error {
		alive()
		return pong(data)
	})
	for {
		kind, raw, err := c.conn.ReadMessage()
		if err != nil {
			c.mu.Lock()
			c.err = err
			c.mu.Unlock()
			return
		}
		alive()
		if f := c.decodeFrame(kind, raw); f != nil {
			c.deliver(f)
		}
	}
}

func (c *Client) deliver(f *frame) {
	c.mu.Lock()
	var receivers []*waiter
	for w := range c.waiters {
		if w.match(f) {
			receivers = append(receivers, w)
		}
	}
	if len(receivers) == 0 && f.Type == backgroundEnded && len(c.unclaimedEnds) < maxBuffered {
		c.unclaimedEnds = append(c.unclaimedEnds, f)
	}
	c.mu.Unlock()
	for _, w := range receivers {
		select {
		case w.frames <- f:
		case <-w.gone:
		case <-c.closing:
		}
	}
}

// addWaiter registers a waiter. The caller must call removeWaiter.
func (c *Client) addWaiter(match func(*frame) bool) *waiter {
	w := &waiter{match: match, frames: make(chan *frame, maxBuffered), gone: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiters[w] = struct{}{}
	return w
}

func (c *Client) removeWaiter(w *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiters, w)
	close(w.gone)
}

// next returns a waiter's next frame. After the end of the connection it first returns the frames received before.
func (c *Client) next(ctx context.Context, w *waiter) (*frame, error) {
	select {
	case f := <-w.frames:
		return f, nil
	default:
	}
	select {
	case f := <-w.frames:
		return f, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-c.ended:
	}
	select {
	case f := <-w.frames:
		return f, nil
	default:
		return nil, c.endError()
	}
}

func (c *Client) endError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	return fmt.Errorf("%w: %v", ErrClosed, c.err)
}

// send sends a frame. It checks the frame itself, because the daemon's error might not name the request, so that no
// waiter would receive it.
func (c *Client) send(frame any) error {
	text, err := message.Encode(frame)
	if err != nil {
		return err
	}
	if _, refused := new(message.Decoder).Decode(text); len(refused) > 0 {
		return refused[0]
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	c.conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // writing reports a failure
	if err := c.conn.WriteMessage(websocket.TextMessage, text); err != nil {
		return fmt.Errorf("cannot send a frame: %w, %w: %v", ErrClosed, ErrNotSent, err)
	}
	return nil
}

// roundTrip sends a frame and returns the answer. An error_message becomes a *message.Error.
func (c *Client) roundTrip(ctx context.Context, w *waiter, question any) (*frame, error) {
	defer c.removeWaiter(w)
	if err := c.send(question); err != nil {
		return nil, err
	}
	f, err := c.next(ctx, w)
	if err != nil {
		return nil, err
	}
	if f.Type == "error_message" {
		return nil, f.asError()
	}
	return f, nil
}

func (f *frame) asError() error {
	e := &message.Error{}
	if err := f.decode(e); err != nil {
		return err
	}
	return e
}
