package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/message"
)

// Limits of how long an HTTP request waits for its calls.
const (
	usualWait = 30 * time.Second
	mostWait  = 5 * time.Minute
)

type waiting struct {
	srv  *Server
	done <-chan struct{} // closed when the client disconnects or the wait ends
	wake chan struct{}   // capacity 1
}

func (s *Server) wait(r *http.Request) (*waiting, context.CancelFunc, *message.Error) {
	wait := usualWait
	if text := r.URL.Query().Get("wait"); text != "" {
		ms, err := strconv.ParseInt(text, 10, 64)
		if err != nil || ms < 0 || ms > mostWait.Milliseconds() {
			return nil, nil, message.InvalidArguments.Errorf("wait is %.40q: expected milliseconds, 0 to %d", text, mostWait.Milliseconds())
		}
		wait = time.Duration(ms) * time.Millisecond
	}
	ctx, stop := context.WithTimeout(r.Context(), wait)
	return &waiting{s, ctx.Done(), make(chan struct{}, 1)}, stop, nil
}

func (w *waiting) poke() { notify(w.wake) }

// end waits for a call's end. It returns nil if the wait is over or toold stops.
func (w *waiting) end(of *dispatch.Watcher) *dispatch.Final {
	for {
		for _, event := range of.Call().Events(0) {
			if final, ok := event.(dispatch.Final); ok && !final.Kept {
				return &final
			} else if ok {
				return nil
			}
		}
		select {
		case <-w.wake:
		case <-w.done:
			return nil
		}
	}
}

func (s *Server) serveCalls(w http.ResponseWriter, r *http.Request, token Token) {
	kept := s.kept.account(token.Name)
	defer kept.take(0)
	m, bad, status, e := s.readRequest(w, r, kept)
	if e != nil {
		writeJSON(w, status, e)
		return
	}
	wait, stop, e := s.wait(r)
	if e != nil {
		writeJSON(w, http.StatusBadRequest, e)
		return
	}
	defer stop()
	sub := dispatch.Submission{Client: token.Name, Conn: "http " + token.Name, Request: m, Keep: true, Wake: wait.poke}
	if dir := r.URL.Query().Get("workspace"); dir != "" {
		ack, err := s.opt.Greet(dir)
		if err != nil && !s.knowsOne(sub) {
			writeJSON(w, http.StatusBadRequest, message.InvalidArguments.Errorf("workspace: %v; nothing ran", err))
			return
		}
		sub.Dir = selected(ack, dir)
	}
	if most := s.opt.CallsPerConnection; len(m.Calls) > most && m.Item == "" {
		sub.TooMany = fmt.Sprintf("%d calls are the most of one request", most)
	}
	if m.Item != "" {
		wait.item(w, s.newItem(nil, sub))
		return
	}
	wait.calls(w, sub, bad)
}

// knowsOne reports whether one of the calls may have run, so that the Dispatcher must answer them.
func (s *Server) knowsOne(sub dispatch.Submission) bool {
	return slices.ContainsFunc(sub.Request.Calls, func(c message.ToolCall) bool {
		return s.opt.Dispatch.Knows(dispatch.Key{Client: sub.Client, Agent: sub.Request.AgentID, ID: c.ID})
	})
}

// selected returns what selects a client's workspace. A dir without one becomes relative, which matches none.
func selected(ack message.HelloAck, dir string) string {
	return cmp.Or(ack.Workspace, strings.TrimLeft(dir, "/"))
}

// readBody returns a request's body, and charges so many copies of it to kept until the caller gives that back. A single
// request of a client is always accepted, unless others have much.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, kept *account, copies int64) ([]byte, int, *message.Error) {
	if r.ContentLength < 0 {
		return nil, http.StatusLengthRequired, message.InvalidFrame.Errorf("send the length of the body in Content-Length")
	}
	incoming := s.incoming.account(kept.client)
	defer incoming.take(0)
	frame, err := incoming.read(http.MaxBytesReader(w, r.Body, s.opt.MaxFrameBytes), 0)
	if errors.Is(err, errBusy) {
		return nil, http.StatusServiceUnavailable, message.TooManyCalls.Errorf("toold receives too much at once (limits.incoming_bytes); try again later")
	}
	if _, is := errors.AsType[*http.MaxBytesError](err); is {
		return nil, http.StatusRequestEntityTooLarge, message.InvalidFrame.Errorf("the body has more than %d bytes (limits.max_frame_bytes)", s.opt.MaxFrameBytes)
	}
	if err != nil {
		return nil, http.StatusBadRequest, message.InvalidFrame.Errorf("the body cannot be read: %v", err)
	}
	if !kept.take(min(copies*int64(len(frame)), s.opt.IncomingBytes/2)) {
		return nil, http.StatusServiceUnavailable, message.TooManyCalls.Errorf("the requests that are not answered yet are too large together (limits.incoming_bytes); nothing ran, try again later")
	}
	return frame, 0, nil
}

// readRequest returns a body's request and the errors of invalid calls in it, or why there is no request.
func (s *Server) readRequest(w http.ResponseWriter, r *http.Request, kept *account) (m *message.Request, bad []*message.Error, status int, e *message.Error) {
	frame, status, e := s.readBody(w, r, kept, 1)
	if e != nil {
		return nil, nil, status, e
	}
	in, bad := (&message.Decoder{MaxFragmentBytes: int(s.opt.MaxFrameBytes)}).Decode(frame)
	if len(in) == 1 {
		if m, ok := in[0].(*message.Request); ok {
			return m, bad, 0, nil
		}
	}
	if len(bad) > 0 {
		return nil, nil, http.StatusBadRequest, bad[0]
	}
	return nil, nil, http.StatusBadRequest, message.InvalidFrame.Errorf("the body asks for no call; send one whole request in any of the dialects")
}

func (w *waiting) calls(out http.ResponseWriter, sub dispatch.Submission, bad []*message.Error) {
	var watchers []*dispatch.Watcher
	for _, sub.Call = range sub.Request.Calls {
		watcher := w.srv.opt.Dispatch.Submit(sub)
		defer watcher.Detach()
		watchers = append(watchers, watcher)
	}
	var answers []any
	var last dispatch.Final
	for _, watcher := range watchers {
		final := w.end(watcher)
		if final == nil {
			writeJSON(out, http.StatusAccepted, sub.Request.Accepted(bad))
			return
		}
		last = *final
		answers = append(answers, answerTo(watcher.Call(), sub.Request.Answer, last))
	}
	for _, e := range bad {
		answers = append(answers, e)
	}
	if len(answers) > 1 {
		writeJSON(out, http.StatusOK, answers)
	} else {
		writeJSON(out, statusOf(last), answers[0])
	}
	for _, watcher := range watchers {
		w.srv.opt.Dispatch.Delivered(watcher.Call())
	}
}

// item runs an item's parts. A repeated request continues after the parts that ran.
func (w *waiting) item(out http.ResponseWriter, it *item) {
	defer w.srv.dropItems(it)
	for {
		watcher := it.submit(w.srv.opt.Dispatch)
		defer watcher.Detach() // only on return: a repeated request must find the parts
		final := w.end(watcher)
		if final == nil {
			writeJSON(out, http.StatusAccepted, it.sub.Request.Accepted(nil))
			return
		}
		if !it.took(watcher.Call(), *final) {
			writeJSON(out, statusOf(*final), it.answer(*final))
			break
		}
	}
	for _, c := range it.calls {
		w.srv.opt.Dispatch.Delivered(c)
	}
}

func (s *Server) serveCall(w http.ResponseWriter, r *http.Request, token Token) {
	wait, stop, e := s.wait(r)
	if e != nil {
		writeJSON(w, http.StatusBadRequest, e)
		return
	}
	defer stop()
	key := dispatch.Key{Client: token.Name, Agent: r.URL.Query().Get("agent_id"), ID: r.PathValue("id")}
	watcher := s.opt.Dispatch.Rejoin(key, wait.poke)
	defer watcher.Detach()
	final := wait.end(watcher)
	if final == nil {
		writeJSON(w, http.StatusAccepted, (&message.Request{Calls: []message.ToolCall{{ID: key.ID}}}).Accepted(nil))
		return
	}
	writeJSON(w, statusOf(*final), answerTo(watcher.Call(), nil, *final))
	s.opt.Dispatch.Delivered(watcher.Call())
}

func answerTo(call *dispatch.Call, as func(...message.ToolReturn) any, final dispatch.Final) any {
	if final.Err != nil {
		return final.Err
	}
	return answer(call, as, final)
}

func statusOf(final dispatch.Final) int {
	if final.Err == nil {
		return http.StatusOK
	}
	return statusOfError(final.Err)
}

func statusOfError(e *message.Error) int {
	switch e.Type {
	case message.DuplicateToolCall:
		return http.StatusConflict
	case message.NotFound:
		return http.StatusNotFound
	}
	return http.StatusInternalServerError
}
