//go:build linux

package conformance

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"
)

// frame is one frame that a connection received.
type frame struct {
	conn  string
	life  int // which life of the connection: it grows with each reconnect
	value any // the JSON; nil when it is none
	at    time.Time
}

// recorder keeps what all connections of a case receive, in order of arrival.
type recorder struct {
	mu      sync.Mutex
	frames  []frame
	faults  []string // frames that no daemon may send
	wire    map[string]int64
	payload map[string]int64 // bytes of output in the deltas, by connection
	biggest int
	deltas  map[string]*strings.Builder // the concatenated deltas of each call and stream
	next    map[string]float64          // the offset at which each must go on
	kept    int64
	changed chan struct{} // closed, and replaced, when something arrives
}

func newRecorder() *recorder {
	return &recorder{
		wire: map[string]int64{}, payload: map[string]int64{},
		deltas: map[string]*strings.Builder{}, next: map[string]float64{}, changed: make(chan struct{}),
	}
}

// maxDeltas bounds the deltas of a case that are kept as frames and as text; beyond
// it they are only counted.
const maxDeltas = 8 << 20

// add records a frame.
func (r *recorder) add(conn string, life, kind int, data []byte) {
	f := frame{conn: conn, life: life, at: time.Now()}
	var fault string
	switch err := json.Unmarshal(data, &f.value); {
	case kind != websocket.TextMessage:
		fault = "a binary frame"
	case !utf8.Valid(data):
		fault = "a frame that is not UTF-8"
	case err != nil:
		fault = "a frame that is not JSON: " + err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if fault != "" {
		r.faults = append(r.faults, "connection "+conn+" received "+fault)
	}
	r.wire[conn] += int64(len(data))
	r.biggest = max(r.biggest, len(data))
	if r.keep(f, len(data)) {
		r.frames = append(r.frames, f)
	}
	r.notifyLocked()
}

// keep reports whether to keep a frame. The caller holds mu.
func (r *recorder) keep(f frame, size int) bool {
	m, ok := f.value.(map[string]any)
	if !ok || m["message_type"] != "tool_output_delta" {
		return true
	}
	key := fmt.Sprint(f.conn, "/", f.life, "/", m["tool_call_id"], "/", m["stream"])
	data := r.deltaData(key, m)
	r.payload[f.conn] += int64(len(data))
	r.kept += int64(size)
	if r.kept > maxDeltas {
		return false
	}
	if r.deltas[key] == nil {
		r.deltas[key] = &strings.Builder{}
	}
	r.deltas[key].WriteString(data)
	return true
}

// deltaData returns the bytes of a delta. They must continue where the previous delta ended, unless a gap says what is
// missing. The caller holds mu.
func (r *recorder) deltaData(key string, delta map[string]any) string {
	data, _ := delta["data"].(string)
	if b64, ok := delta["data_b64"].(string); ok {
		raw, _ := base64.StdEncoding.DecodeString(b64)
		data = string(raw)
	}
	offset, _ := delta["offset"].(float64)
	from, isGap := lookup("gap.from", delta)
	to, _ := lookup("gap.to", delta)
	next := r.next[key]
	isGap = isGap && from == next && to == offset
	if offset != next && !isGap {
		r.faults = append(r.faults, fmt.Sprintf("the output %s goes on at byte %.0f, want %.0f: %.200s", key, offset, next, text(delta)))
	}
	r.next[key] = offset + float64(len(data))
	return data
}

// notifyLocked wakes those who wait. The lock is held.
func (r *recorder) notifyLocked() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// notify wakes those who wait because a connection ended.
func (r *recorder) notify() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notifyLocked()
}

// all returns the frames received so far, and a channel that is closed when
// that changes.
func (r *recorder) all() ([]frame, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.frames[:len(r.frames):len(r.frames)], r.changed
}

// forget drops what was received.
func (r *recorder) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frames, r.kept = nil, 0
	clear(r.deltas)
}

// wait returns nil when done returns true for the frames received so far. It calls done whenever something arrives.
func (r *recorder) wait(ctx context.Context, done func([]frame) bool) error {
	for {
		frames, changed := r.all()
		if done(frames) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// conn is one life of a connection.
type conn struct {
	name    string
	life    int
	ws      *websocket.Conn
	onFrame func(c *conn, kind int, data []byte)
	pong    chan struct{} // has an item when a pong came
	ended   chan struct{} // closed when no more is received
	code    int           // how it ended: the close code, 1006 without one; set before ended is closed
	frozen  atomic.Bool

	mu   sync.Mutex
	gate chan struct{} // closed while the connection reads

	write sync.Mutex // one writer at a time
}

// dial connects. got is called for each frame, on one goroutine.
func dial(ctx context.Context, d *daemon, name string, life int, token string, onFrame func(*conn, int, []byte), ended func()) (*conn, error) {
	header := http.Header{"Authorization": {"Bearer " + token}}
	ws, response, err := websocket.DefaultDialer.DialContext(ctx, d.ws, header)
	if err != nil {
		if response != nil {
			err = fmt.Errorf("%w: %s", err, response.Status)
		}
		return nil, fmt.Errorf("cannot connect: %w", err)
	}
	c := &conn{
		name: name, life: life, ws: ws, onFrame: onFrame,
		pong: make(chan struct{}, 1), ended: make(chan struct{}), gate: make(chan struct{}),
	}
	close(c.gate)
	c.handleControl()
	// Ends when the connection does; close waits for it.
	go func() {
		c.read()
		ended()
	}()
	return c, nil
}

// greet sends a WebSocket ping and waits for its pong: the daemon then serves
// the connection.
func greet(ctx context.Context, c *conn) error {
	if err := c.ws.WriteControl(websocket.PingMessage, []byte("hello"), time.Now().Add(patience)); err != nil {
		return err
	}
	select {
	case <-c.pong:
		return nil
	case <-c.ended:
		return fmt.Errorf("connection %s ended at once", c.name)
	case <-ctx.Done():
		return fmt.Errorf("connection %s: no pong", c.name)
	}
}

// handleControl answers pings and close frames unless the peer is frozen.
func (c *conn) handleControl() {
	ping, closing := c.ws.PingHandler(), c.ws.CloseHandler()
	c.ws.SetPingHandler(func(data string) error {
		if c.frozen.Load() {
			return nil
		}
		return ping(data)
	})
	c.ws.SetCloseHandler(func(code int, why string) error {
		if c.frozen.Load() {
			return nil
		}
		return closing(code, why)
	})
	c.ws.SetPongHandler(func(string) error {
		select {
		case c.pong <- struct{}{}:
		default:
		}
		return nil
	})
}

// read takes frames until the connection ends.
func (c *conn) read() {
	defer close(c.ended)
	for {
		c.mu.Lock()
		gate := c.gate
		c.mu.Unlock()
		<-gate
		kind, data, err := c.ws.ReadMessage()
		if err != nil {
			c.code = websocket.CloseAbnormalClosure
			if closed, ok := errors.AsType[*websocket.CloseError](err); ok {
				c.code = closed.Code
			}
			c.ws.Close()
			return
		}
		c.onFrame(c, kind, data)
	}
}

// pause stops reading after at most one more frame.
func (c *conn) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gate = make(chan struct{})
}

func (c *conn) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.gate:
	default:
		close(c.gate)
	}
}

// freeze plays a client whose machine is gone: nothing is answered, not even pings. The connection is still read, to
// notice when the daemon gives up.
func (c *conn) freeze() { c.frozen.Store(true) }

// closeCode is how the connection ended. A frozen peer cannot have finished the closing handshake.
func (c *conn) closeCode() int {
	if c.frozen.Load() {
		return websocket.CloseAbnormalClosure
	}
	return c.code
}

// waitClosed waits until a connection ends to which writing failed.
func (c *conn) waitClosed(why error) error {
	c.resume()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-c.ended:
		return nil
	case <-limit.C:
		return fmt.Errorf("the connection is open, but %w", why)
	}
}

func (c *conn) open() bool {
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

// send writes one message as one frame. The library would cut a long message
// into many, which is another thing to a daemon that limits frames.
func (c *conn) send(kind int, data []byte) error {
	return c.writeRaw(rawFrame(0x80|byte(kind), data))
}

// writeRaw writes whole frames. Pongs are written by the library at the same
// time; the socket keeps single writes apart.
func (c *conn) writeRaw(raw []byte) error {
	c.write.Lock()
	defer c.write.Unlock()
	socket := c.ws.NetConn()
	socket.SetWriteDeadline(time.Now().Add(patience))
	_, err := socket.Write(raw)
	return err
}

// sendFragments writes a text message in n parts with a ping between them (RFC
// 6455 §5.4).
func (c *conn) sendFragments(data []byte, n int) error {
	size := len(data)/n + 1
	for i := range n {
		part := data[min(i*size, len(data)):min((i+1)*size, len(data))]
		head := byte(0)
		if i == 0 {
			head = websocket.TextMessage
		}
		if i == n-1 {
			head |= 0x80
		}
		if err := c.writeRaw(rawFrame(head, part)); err != nil {
			return err
		}
		if i < n-1 {
			if err := c.writeRaw(rawFrame(0x80|websocket.PingMessage, []byte("between"))); err != nil {
				return err
			}
		}
	}
	return nil
}

// rawFrame makes a masked frame (RFC 6455 §5.2); the mask is zero, which masks
// nothing.
func rawFrame(head byte, data []byte) []byte {
	raw := make([]byte, 0, len(data)+14)
	raw = append(raw, head)
	switch n := len(data); {
	case n < 126:
		raw = append(raw, 0x80|byte(n))
	case n < 1<<16:
		raw = binary.BigEndian.AppendUint16(append(raw, 0x80|126), uint16(n))
	default:
		raw = binary.BigEndian.AppendUint64(append(raw, 0x80|127), uint64(n))
	}
	return append(append(raw, 0, 0, 0, 0), data...)
}

// close closes the socket without a closing handshake and waits for the reader.
func (c *conn) close() {
	c.ws.NetConn().Close()
	c.resume()
	<-c.ended
}
