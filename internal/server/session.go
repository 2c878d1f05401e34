package server

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/message"
)

// maxBadFrames limits consecutive invalid frames, because answering them amplifies a flood.
const maxBadFrames = 200

// A session is one connection: a reader, a writer, and the calls that it follows.
type session struct {
	srv   *Server
	id    string
	token Token
	conn  *websocket.Conn
	dec   *message.Decoder
	out   *outbox
	wake  chan struct{}                     // capacity 1: there may be something to write
	take  func(kind int, frame []byte) bool // handles a frame; false: the connection ends
	bye   func(code int, text string)       // writes a close frame after all due output

	leaving atomic.Bool   // reading has ended, so the session will end
	over    chan struct{} // closed when the session has ended and its state is stored
	hungUp  chan struct{} // capacity 1: another connection of the client resumes this one
	freed   chan struct{} // capacity 1: a call was answered
	written chan struct{} // closed when the writer has ended

	// Only the reader uses these.
	incoming   *account         // of the server's budget
	frame      []byte           // being handled
	program    *message.Program // from hello
	badInRow   int              // invalid frames in a row
	subscribed bool             // there is a subscription, or one in the outbox
	dir        string           // selects the workspace of calls; see dispatch.Submission

	last history // used only by the writer

	mu      sync.Mutex
	feeds   []*feed               // of the calls that the session follows
	items   []*item               // unanswered items
	met     map[dispatch.Key]bool // background calls that the session has followed
	wants   output                // requested form of live output
	ending  bool                  // write all due output, then close
	lingers bool                  // incoming frames are ignored
	left    bool                  // the connection has ended
}

func newSession(srv *Server, conn *websocket.Conn, token Token) *session {
	ss := &session{
		srv: srv, id: message.NewID("conn"), token: token, conn: conn, incoming: srv.incoming.account(token.Name),
		dec:  &message.Decoder{MaxFragmentBytes: int(srv.opt.MaxFrameBytes)},
		wake: make(chan struct{}, 1), over: make(chan struct{}), hungUp: make(chan struct{}, 1),
		freed: make(chan struct{}, 1), written: make(chan struct{}), met: make(map[dispatch.Key]bool),
	}
	ss.out, ss.take = newOutbox(ss.poke), ss.accept
	ss.bye = func(code int, text string) { ss.out.push(goodbye{code, text}) }
	return ss
}

// poke wakes the writer.
func (ss *session) poke() { notify(ss.wake) }

func notify(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// run serves the connection, and returns when its reader and writer have ended.
func (ss *session) run() {
	defer ss.conn.Close()
	if ss.token.decides() {
		defer ss.srv.opt.Approvals.Join(approver{ss})()
	}
	if ss.token.has(Agent) {
		defer ss.srv.opt.Dispatch.Join(ss.token.Name, func(c *dispatch.Call) { ss.follow(c.Watch(ss.poke)) })()
	}
	gone := make(chan struct{})
	// Ends with gone, finish, or a failed write; then it unblocks the reader, which may wait for a frame, the outbox
	// or room. After it has written a close frame, the reader ends it.
	go func() {
		defer close(ss.written)
		ss.write(gone)
		ss.out.close()
		ss.conn.Close()
	}()
	ss.read()
	ss.leaving.Store(true)
	close(gone)
	ss.out.close()
	<-ss.written
	if ss.token.has(Agent) {
		ss.srv.park(ss.resumeState())
	}
	close(ss.over)
	ss.detachAll()
}

// read handles frames until the connection ends or has to.
func (ss *session) read() {
	defer func() { ss.incoming.take(0) }()
	alive := func(string) error { return ss.conn.SetReadDeadline(time.Now().Add(ss.srv.opt.Idle)) }
	ss.conn.SetPongHandler(alive)
	ping := ss.conn.PingHandler()
	ss.conn.SetPingHandler(func(data string) error { alive(""); return ping(data) })
	bye := ss.conn.CloseHandler()
	ss.conn.SetCloseHandler(func(code int, text string) error {
		ss.leaving.Store(true) // before the answer: the client may reconnect at once
		return bye(code, text)
	})
	ss.conn.SetReadLimit(ss.srv.opt.MaxFrameBytes)
	for {
		alive("")
		kind, frame, err := ss.receive()
		switch {
		case errors.Is(err, websocket.ErrReadLimit):
			// The library has sent a close frame, unless the writer was busy because the client does not read while it
			// writes.
			why := tooBig(ss.srv.opt.MaxFrameBytes)
			ss.out.push(tooBigError(why))
			ss.dismiss(websocket.CloseMessageTooBig, why)
			return
		case errors.Is(err, errBusy):
			ss.dismiss(websocket.CloseTryAgainLater, "toold receives too much at once (limits.incoming_bytes); try again later")
			return
		case timedOut(err):
			ss.farewell(websocket.ClosePolicyViolation, "nothing came for a while, not even an answer to a ping (limits.idle)")
			return
		case err == nil && ss.dismissed():
			return
		case err != nil || !ss.take(kind, frame):
			return
		}
		ss.incoming.take(int64(ss.dec.Held())) // cannot fail, because the share shrinks
	}
}

// receive reads one message, and charges the collected fragments with it.
func (ss *session) receive() (kind int, frame []byte, err error) {
	kind, r, err := ss.conn.NextReader()
	if err != nil {
		return 0, nil, err
	}
	frame, err = ss.incoming.read(r, ss.dec.Held())
	return kind, frame, err
}

func timedOut(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// goodbye is a close frame in the outbox.
type goodbye struct {
	code int
	text string
}

// dismiss ends the connection of a misbehaving client after writing all due output and the reason. Only the reader may
// call it, and must then return.
func (ss *session) dismiss(code int, text string) {
	var saying sync.WaitGroup
	saying.Go(func() { ss.bye(code, text) }) // ends with the connection
	ss.linger()
	saying.Wait()
}

// endWriting sends the end of the stream; the client can still write.
func (ss *session) endWriting() {
	if half, ok := ss.conn.NetConn().(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
	}
}

const lingerFor = 30 * time.Second

// limitLingering sets the read deadline of linger. The caller holds mu.
func (ss *session) limitLingering() {
	within := lingerFor
	if ss.ending {
		within = time.Second
	}
	if ss.lingers {
		ss.conn.NetConn().SetReadDeadline(time.Now().Add(within))
	}
}

// linger reads and ignores frames for some time, because closing a socket with unread data discards sent data. The
// writer leaves the connection open meanwhile.
func (ss *session) linger() {
	defer ss.conn.Close() // ends a writer whose client does not read
	raw := ss.conn.NetConn()
	ss.mu.Lock()
	ss.lingers = true
	ss.limitLingering()
	ss.mu.Unlock()
	buf := make([]byte, 64<<10)
	for left := 8 * ss.srv.opt.MaxFrameBytes; left > 0; {
		n, err := raw.Read(buf)
		if err != nil {
			return
		}
		left -= int64(n)
	}
}

// accept handles a frame of agents, approvers and observers. It returns false if the connection ends.
func (ss *session) accept(kind int, frame []byte) bool {
	ss.frame = frame
	defer func() { ss.frame = nil }()
	var in []message.Inbound
	bad := []*message.Error{message.UnsupportedFrame.Errorf("binary frames are not understood; send one JSON object per text frame")}
	if kind == websocket.TextMessage {
		bad = nil
		ss.safely("", func() { in, bad = ss.dec.Decode(frame) })
	}
	for _, e := range bad {
		ss.reply(e)
	}
	if ss.badInRow++; len(bad) == 0 || len(in) > 0 {
		ss.badInRow = 0
	}
	if ss.badInRow >= maxBadFrames {
		ss.dismiss(websocket.ClosePolicyViolation, "too many invalid frames")
		return false
	}
	for _, m := range in {
		ss.safely("", func() { ss.handle(m) })
	}
	return true
}

// reply answers the frame that is being handled. An error quotes its ids.
func (ss *session) reply(v any) {
	frame, err := message.Encode(v)
	if err != nil {
		v = ss.unencodable(err)
	}
	if e, ok := v.(*message.Error); ok {
		e.Refer(ss.frame)
		frame, err = message.Encode(e)
	}
	if err == nil {
		ss.out.reply(frame)
	}
}

// farewell sends a close frame, unless that takes more than a second.
func (ss *session) farewell(code int, text string) {
	ss.sendClose(code, text, time.Second)
}

func (ss *session) sendClose(code int, text string, within time.Duration) {
	if err := ss.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, text), time.Now().Add(within)); err != nil && !errors.Is(err, net.ErrClosed) {
		ss.srv.opt.Log.Debug("cannot send a close frame", zap.String("conn", ss.id), zap.Error(err))
	}
}

// dismissed ends a connection whose token is no longer valid, and reports whether it did.
func (ss *session) dismissed() bool {
	if !ss.token.revoked() {
		return false
	}
	ss.farewell(websocket.ClosePolicyViolation, "the token "+ss.token.Name+" was revoked or replaced; connect again with a valid one")
	return true
}

// finish lets the session write all due output and then end.
func (ss *session) finish() {
	ss.mu.Lock()
	ss.ending = true
	ss.limitLingering()
	ss.mu.Unlock()
	ss.poke()
}

type approver struct{ ss *session }

func (a approver) Asked(r approval.Request[message.ApprovalRequest]) { a.ss.out.push(r.Show) }

func (a approver) Resolved(r approval.Request[message.ApprovalRequest], v approval.Verdict) {
	a.ss.out.withdraw(r.ID)
	m := resolved(r, v)
	if v.Conn == a.ss.id {
		m.RequestID = v.RequestID
	}
	a.ss.out.push(m)
}

func resolved(r approval.Request[message.ApprovalRequest], v approval.Verdict) message.ApprovalResolved {
	return message.ApprovalResolved{
		MessageType: "approval_resolved", ID: r.ID, CallID: r.Show.CallID,
		Approve: v.Approve, By: v.By, Reason: v.Reason, Widened: message.Widening(v.Escalation).Recorded(),
	}
}
