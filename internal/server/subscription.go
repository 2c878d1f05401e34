package server

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
	"github.com/toold/toold/tools"
)

const (
	eventsAtOnce   = 64  // read from the hub in one turn of the writer
	messagesAtOnce = 100 // read from the journal
)

// subscription has positions in the hub, the journal and calls' output, and keeps no events. Only the session's writer
// goroutine uses it; the hub calls poke from others.
type subscription struct {
	*message.Subscribe
	poke func()

	next      int64 // number of the hub's next event
	seq       int64 // number of the last handled message of the journal
	replaying bool  // reading from the journal until the hub's events continue it
	feeds     map[dispatch.Key]*feed
}

// Requests to the writer, queued in the outbox.
type (
	startSubscription struct{ *message.Subscribe }
	endSubscription   struct{ *message.Unsubscribe }
)

func (ss *session) subscribe(m *message.Subscribe) {
	if !ss.may("subscribe to the calls of others", "", Observer, Approver, Admin) {
		return
	}
	last := ss.srv.opt.Journal.Last()
	switch {
	case ss.subscribed:
		ss.refuse(message.InvalidArguments, "", "this connection has a subscription; send unsubscribe first, or use another connection")
	case m.After != nil && *m.After > last:
		ss.reply(message.InvalidArguments.Errorf("the journal ends at %d, before the number in after; leave after out to begin now, or send 0 for all there is", last))
	default:
		ss.subscribed = true
		ss.out.reply(startSubscription{m})
	}
}

func (ss *session) unsubscribe(m *message.Unsubscribe) {
	if !ss.subscribed {
		ss.refuse(message.InvalidArguments, "", "this connection has no subscription")
		return
	}
	ss.subscribed = false
	ss.out.reply(endSubscription{m})
}

func (w *writer) start(m *message.Subscribe) error {
	s := &subscription{Subscribe: m, poke: w.ss.poke, feeds: map[dispatch.Key]*feed{}}
	w.ss.srv.hub.join(s)
	w.sub = s
	if m.After != nil {
		s.seq, s.replaying = *m.After, true
	} else {
		w.viewRunning()
	}
	return w.send(m.Answer(s.seq))
}

func (w *writer) end() {
	if w.sub == nil {
		return
	}
	w.ss.srv.hub.leave(w.sub)
	for _, f := range w.sub.feeds {
		f.watcher.Detach()
	}
	w.sub = nil
}

func (w *writer) advanceSubscription() (more bool, err error) {
	s := w.sub
	if s == nil {
		return false, nil
	}
	if s.replaying {
		return true, w.replay()
	}
	events, missed := w.ss.srv.hub.read(s, eventsAtOnce)
	if missed > 0 {
		s.replaying = true
		return true, w.send(message.SubscriptionGap{MessageType: "subscription_gap", RequestID: s.RequestID, Skipped: missed, After: s.seq})
	}
	for _, e := range events {
		if err := w.pass(e); err != nil {
			return false, err
		}
	}
	more = len(events) > 0
	for _, f := range s.feeds {
		some, err := w.streamEvent(f)
		if err != nil {
			return false, err
		}
		more = more || some
	}
	return more, nil
}

func (w *writer) replay() error {
	s := w.sub
	last := w.ss.srv.opt.Journal.Last() // the hub has later messages
	page, err := w.ss.srv.opt.Journal.List(context.Background(), journal.Query{
		AfterSeq: s.seq, Ascending: true, Limit: messagesAtOnce,
		Client: s.Client, AgentID: s.AgentID, ConversationID: s.ConversationID, CallID: s.CallID,
	})
	if err != nil {
		w.end()
		e := message.InternalError.Errorf("the subscription has ended: %v", err)
		e.RequestID = s.RequestID
		return w.send(e)
	}
	for _, m := range page.Messages {
		if err := w.pass(recordedEvent(m)); err != nil {
			return err
		}
	}
	if page.HasMore {
		return nil
	}
	s.seq = max(s.seq, last)
	if s.replaying = !w.ss.srv.hub.catchUp(s); !s.replaying {
		w.viewRunning()
	}
	return nil
}

// viewRunning drops the output of ended calls, and follows the output of matching running calls from now on.
func (w *writer) viewRunning() {
	s := w.sub
	for key, f := range s.feeds {
		if w.ss.srv.hub.running(key) != f.watcher.Call() {
			f.watcher.Detach()
			delete(s.feeds, key)
		}
	}
	for _, c := range w.ss.srv.hub.runs(s) {
		e := event{Key: c.Key(), conversation: c.Client().ConversationID, tool: c.ToolName()}
		if capture := c.Capture(); capture != nil && s.matches(&e) {
			stdout, stderr, _ := capture.Totals()
			w.view(c, [2]int64{stdout, stderr})
		}
	}
}

func (w *writer) view(c *dispatch.Call, offsets [2]int64) {
	if w.sub.Wants(message.TopicOutput) && w.sub.feeds[c.Key()] == nil {
		w.sub.feeds[c.Key()] = &feed{watcher: c.View(w.ss.poke), offsets: offsets}
	}
}

// pass writes an event that matches the subscription, after the call's earlier output.
func (w *writer) pass(e event) error {
	s := w.sub
	if e.seq > 0 {
		if e.seq <= s.seq {
			return nil
		}
		s.seq = e.seq
	}
	if !s.matches(&e) {
		return nil
	}
	ends := e.topic == message.TopicReturn || e.frame == nil
	if f := s.feeds[e.Key]; f != nil {
		if err := w.finishOutput(f, ends); err != nil {
			return err
		}
		if ends {
			f.watcher.Detach()
			delete(s.feeds, e.Key)
		}
	}
	if e.frame != nil && s.Wants(e.topic) {
		if err := w.sendEvent(e); err != nil {
			return err
		}
	}
	if e.topic == message.TopicStarted {
		if c := w.ss.srv.hub.running(e.Key); c == e.call {
			w.view(c, [2]int64{})
		}
	}
	return nil
}

func (w *writer) sendEvent(e event) error {
	body, ok := e.frame.(json.RawMessage)
	switch {
	case !ok:
		var err error
		if body, err = message.Encode(e.frame); err != nil {
			return err
		}
	case e.topic == message.TopicReturn:
		body = message.Record(body).Whole()
	}
	return w.send(message.SubscriptionEvent{
		MessageType: "subscription_event", RequestID: w.sub.RequestID, Topic: e.topic, Seq: e.seq,
		Client: e.Client, AgentID: e.Agent, ConversationID: e.conversation, Event: body,
	})
}

func (s *subscription) matches(e *event) bool {
	switch {
	case s.Client != "" && s.Client != e.Client, s.AgentID != "" && s.AgentID != e.Agent:
		return false
	case s.ConversationID != "" && s.ConversationID != e.conversation, s.CallID != "" && s.CallID != e.ID:
		return false
	case s.ToolName == "":
		return true
	case e.tool == "":
		e.tool = namedTool(e.frame)
	}
	return s.ToolName == e.tool
}

func namedTool(frame any) string {
	body, _ := frame.(json.RawMessage)
	var m struct {
		ToolName string `json:"tool_name"`
		ToolCall struct {
			ToolName string `json:"tool_name"`
		} `json:"tool_call"`
	}
	if json.Unmarshal(body, &m) != nil {
		return ""
	}
	return cmp.Or(m.ToolName, m.ToolCall.ToolName)
}

// finishOutput writes a piece of a call's output or, if all is set, the rest of it.
func (w *writer) finishOutput(f *feed, all bool) error {
	for {
		more, err := w.streamEvent(f)
		if err != nil || !more || !all {
			return err
		}
	}
}

func (w *writer) streamEvent(f *feed) (more bool, err error) {
	capture := f.watcher.Call().Capture()
	if capture == nil {
		return false, nil
	}
	return w.pieces(f, capture, w.showEvent)
}

func (w *writer) showEvent(f *feed, s tools.Stream, at int64, p []byte) error {
	call := f.watcher.Call()
	d := message.OutputDelta{CallID: call.ID, AgentID: call.Key().Agent, Stream: s.String(), Offset: at}
	if from := f.offsets[s]; at > from {
		d.Gap = &message.Gap{From: from, To: at}
	}
	return w.sendEvent(event{
		Key: call.Key(), topic: message.TopicOutput, conversation: call.Client().ConversationID,
		frame: json.RawMessage(d.AppendFrame(nil, p)),
	})
}
