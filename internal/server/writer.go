package server

import (
	"errors"
	"slices"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/message"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/spool"
)

const deltaBytes = 32 << 10

type feed struct {
	watcher *dispatch.Watcher
	shown   bool     // a background call's events and output are sent too; see visible
	events  int      // number of events written
	started bool     // tool_started was written
	offsets [2]int64 // bytes written of each stream
	channel uint32   // of binary frames; 0: none

	items []*item            // items whose current part is the call
	asked []*message.Request // the latest request of each dialect for the call by itself
}

// asks records a request for the call by itself. The return is written in its dialect.
func (f *feed) asks(m *message.Request) {
	f.asked = slices.DeleteFunc(f.asked, func(o *message.Request) bool { return o.Dialect == m.Dialect })
	f.asked = append(f.asked, &message.Request{Dialect: m.Dialect, Most: m.Most})
}

// write writes until gone is closed, nothing more is due after finish, or a write fails.
func (ss *session) write(gone <-chan struct{}) {
	w := &writer{ss: ss, beat: time.Now().Add(ss.srv.opt.Ping)}
	defer w.end()
	for {
		busy, err := w.turn()
		if !busy {
			w.rest()
		}
		if errors.Is(err, websocket.ErrCloseSent) {
			ss.endWriting()
			<-gone // wait until the client closes too, or the reader notices that it has
			return
		}
		if errors.Is(err, errGivenUp) {
			ss.giveUp(gone)
		}
		if err != nil {
			return
		}
		if busy {
			continue
		}
		if ss.owesNothing() {
			ss.farewell(websocket.CloseGoingAway, "toold is stopping")
			select { // do not wait long for the client's close frame
			case <-gone:
			case <-time.After(time.Second):
			}
			return
		}
		select {
		case <-ss.wake:
		case <-time.After(time.Until(w.beat)):
		case <-gone:
			return
		}
	}
}

func (ss *session) giveUp(gone <-chan struct{}) {
	select {
	case <-gone:
	default:
		ss.farewell(websocket.ClosePolicyViolation, "too many frames wait for this client to read them; connect again and read faster")
	}
}

func (ss *session) owesNothing() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.ending && len(ss.feeds) == 0
}

type writer struct {
	ss       *session
	beat     time.Time // time of the next ping
	seq      int64     // event_seq of the last delta
	*buffers           // nil while there is no output to write; see pieces

	channels uint32 // number of channels assigned to binary output
	sub      *subscription
}

// buffers hold output between capture and socket. Writers share them, because most are idle.
type buffers struct {
	piece [deltaBytes]byte
	frame []byte
}

// rest returns the buffers to the pool.
func (w *writer) rest() {
	if w.buffers != nil {
		w.ss.srv.buffers.Put(w.buffers)
		w.buffers = nil
	}
}

var errGivenUp = errors.New("the client was given up")

// errRevoked says that the token is no longer valid. The client has been notified.
var errRevoked = errors.New("the token is no longer in force")

// turn writes up to one queued message and a piece of each followed call. busy means that there may be more to write.
// ErrCloseSent means that a close frame was written last.
func (w *writer) turn() (busy bool, err error) {
	if err := w.ping(); err != nil {
		return false, err
	}
	v, ok, open := w.ss.out.take()
	if !open {
		return false, errGivenUp
	}
	if bye, last := v.(goodbye); last {
		w.ss.sendClose(bye.code, bye.text, lingerFor)
		return false, websocket.ErrCloseSent
	}
	if ok {
		if err := w.send(v); err != nil {
			return false, err
		}
		busy = true
	}
	for _, f := range w.ss.following() {
		more, err := w.advance(f)
		if err != nil {
			return false, err
		}
		busy = busy || more
	}
	more, err := w.advanceSubscription()
	return busy || more, err
}

func (w *writer) ping() error {
	if time.Now().Before(w.beat) {
		return nil
	}
	w.beat = time.Now().Add(w.ss.srv.opt.Ping)
	if w.ss.dismissed() {
		return errRevoked
	}
	return w.ss.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(w.ss.srv.opt.Idle))
}

// advance writes the next piece of a call: events in order, output between them, the return last.
func (w *writer) advance(f *feed) (more bool, err error) {
	call := f.watcher.Call()
	if of := call.BackgroundOf(); of != nil && w.ss.follows(of) {
		return false, nil // the return of its parent call must precede it
	}
	shown := w.ss.visible(f)
	// Events are read first: if the last is the return, all output is captured.
	events := call.Events(f.events)
	for _, e := range events {
		final, last := e.(dispatch.Final)
		switch {
		case !last && shown:
			if err := w.send(w.opened(f, e)); err != nil {
				return false, err
			}
			f.events++
		case last:
			if more, err := w.stream(f, call, shown); more || err != nil {
				return more, err
			}
			return true, w.conclude(f, call, final)
		}
	}
	if !f.started {
		return false, nil // output captured after the events were read
	}
	return w.stream(f, call, shown)
}

// stream writes the next pieces of a call's output in order of arrival.
func (w *writer) stream(f *feed, call *dispatch.Call, shown bool) (more bool, err error) {
	capture := call.Capture()
	if capture == nil || !shown || w.ss.wanted() == silent {
		return false, nil
	}
	return w.pieces(f, capture, w.show)
}

// shower writes a piece of a stream that begins at offset at.
type shower func(f *feed, s tools.Stream, at int64, p []byte) error

func (w *writer) pieces(f *feed, capture *spool.Capture, show shower) (more bool, err error) {
	if w.buffers == nil {
		w.buffers = w.ss.srv.buffers.Get().(*buffers)
	}
	for sent := 0; sent < deltaBytes; {
		s, n := capture.Turn(f.offsets)
		wrote, err := w.writePiece(f, capture, s, n, show)
		if wrote == 0 && err == nil && n > 0 { // an incomplete character; its rest may follow
			wrote, err = w.writePiece(f, capture, tools.Stderr-s, deltaBytes, show)
		}
		if wrote == 0 || err != nil {
			return more, err
		}
		sent += wrote
		more = true
	}
	return more, nil
}

func (w *writer) writePiece(f *feed, capture *spool.Capture, s tools.Stream, most int64, show shower) (int, error) {
	from := w.catchUp(capture, s, f.offsets[s])
	if from > f.offsets[s] {
		most = deltaBytes
	}
	p, start := capture.Next(s, from, w.piece[:min(most, deltaBytes)])
	if len(p) == 0 {
		return 0, nil
	}
	if err := show(f, s, start, p); err != nil {
		return 0, err
	}
	f.offsets[s] = start + int64(len(p))
	return len(p), nil
}

// catchUp skips output of a slow reader to near the end, so that output remains live and the return prompt. The client
// is notified of the gap and can fetch it.
func (w *writer) catchUp(capture *spool.Capture, s tools.Stream, from int64) int64 {
	stdout, stderr, _ := capture.Totals()
	total := stdout
	if s == tools.Stderr {
		total = stderr
	}
	if total-from > w.ss.srv.opt.OutboxBytes {
		return total - deltaBytes
	}
	return from
}

// opened records a started call, and assigns its binary channel.
func (w *writer) opened(f *feed, event any) any {
	started, ok := event.(message.ToolStarted)
	f.started = f.started || ok
	if !ok || w.ss.wanted() != binary {
		return event
	}
	w.channels++
	f.channel = w.channels
	started.Channel = f.channel
	return started
}

// show writes live output p at an offset of its stream, after the client's offset in the feed. Calls that started
// before the client requested binary output continue as text.
func (w *writer) show(f *feed, s tools.Stream, at int64, p []byte) error {
	now := piece{call: f.watcher.Call().Key(), stream: s, from: f.offsets[s], seq: noSeq}
	d := message.OutputDelta{CallID: now.call.ID, AgentID: now.call.Agent, Stream: s.String(), Offset: at}
	if f.channel != 0 {
		w.ss.last.wrote(now)
		w.frame = d.AppendBinary(w.frame[:0], f.channel, p)
		return w.ss.writeFrame(websocket.BinaryMessage, w.frame)
	}
	w.seq++
	now.seq, d.EventSeq = w.seq, w.seq
	w.ss.last.wrote(now)
	if from := f.offsets[s]; at > from {
		d.Gap = &message.Gap{From: from, To: at}
	}
	w.frame = d.AppendFrame(w.frame[:0], p)
	return w.ss.writeFrame(websocket.TextMessage, w.frame)
}

// conclude writes the call's return in the dialect of each request, and ends the feed.
func (w *writer) conclude(f *feed, call *dispatch.Call, final dispatch.Final) error {
	defer f.watcher.Detach()
	w.ss.last.ended(ending{w.seq, call.Key(), time.Now()})
	w.ss.unfollow(f)
	if final.Kept {
		return nil // the connection is about to end
	}
	for _, it := range f.items {
		if err := w.concludePart(it, call, final); err != nil {
			return err
		}
	}
	if len(f.items) > 0 && len(f.asked) == 0 {
		return nil
	}
	if final.Err != nil {
		return w.send(final.Err)
	}
	for _, v := range f.answers(call, final) {
		if err := w.send(v); err != nil {
			return err
		}
	}
	w.ss.srv.opt.Dispatch.Delivered(call)
	if final.Background != nil {
		w.ss.show(final.Background)
	}
	return nil
}

// answers returns the return in each dialect that requested it or, if none is recorded, in the call's own.
func (f *feed) answers(call *dispatch.Call, final dispatch.Final) (all []any) {
	for _, m := range f.asked {
		all = append(all, answer(call, m.Answer, final))
	}
	if len(all) == 0 {
		all = append(all, answer(call, nil, final))
	}
	return all
}

// answer returns the return as formatted by as or, if as is nil, in the call's own dialect.
func answer(call *dispatch.Call, as func(...message.ToolReturn) any, final dispatch.Final) any {
	if of := call.BackgroundOf(); of != nil {
		return final.Return.BackgroundEnded(of.ID)
	}
	own := call.Answer(*final.Return)
	if as != nil {
		own = as(*final.Return)
	}
	if own != nil {
		return own
	}
	return final.Return
}

func (w *writer) send(v any) error {
	switch v := v.(type) {
	case startSubscription:
		return w.start(v.Subscribe)
	case endSubscription:
		w.end()
		return w.send(v.Answer())
	}
	frame, ok := v.([]byte)
	if !ok {
		var err error
		if frame, err = message.Encode(v); err != nil {
			frame, err = message.Encode(w.ss.unencodable(err))
		}
		if err != nil {
			return err
		}
	}
	return w.ss.writeFrame(websocket.TextMessage, frame)
}

func (ss *session) unencodable(err error) *message.Error {
	ss.srv.opt.Log.Error("cannot encode a message", zap.String("conn", ss.id), zap.Error(err))
	return message.InternalError.Errorf("toold could not encode its answer")
}

func (ss *session) writeFrame(kind int, frame []byte) error {
	if err := ss.conn.SetWriteDeadline(time.Now().Add(ss.srv.opt.Idle)); err != nil {
		return err
	}
	return ss.conn.WriteMessage(kind, frame)
}
