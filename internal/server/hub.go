package server

import (
	"encoding/json"
	"math"
	"slices"
	"sync"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
)

// Limits of a hub. A subscriber that falls further behind gets a gap.
const (
	maxEvents     = 4096
	maxEventBytes = 16 << 20 // approximate: smallEvent is added for each event
	smallEvent    = 512
)

type event struct {
	dispatch.Key
	topic        string
	seq          int64 // number in the journal; 0: not in the journal
	conversation string
	tool         string // "" if only the frame contains it
	frame        any    // nil: the event only ends the call
	call         *dispatch.Call
	size         int
}

// started is a call with the numbers of its start and end events; see hub.first.
type started struct {
	call       *dispatch.Call
	began, end int64
}

// hub keeps the latest events once for all subscribers, and none if there are no subscribers. Publishing never waits
// for a subscriber.
type hub struct {
	last func() int64 // number of the last message in the journal

	mu      sync.Mutex
	events  []event
	first   int64 // number of events[0], from the start of the daemon
	bytes   int
	covered int64                    // events include all journal messages after this one
	calls   map[dispatch.Key]started // running calls, and ended ones while their events are kept
	readers map[*subscription]struct{}
}

func newHub(opt Options) *hub {
	h := &hub{last: func() int64 { return 0 }, calls: map[dispatch.Key]started{}, readers: map[*subscription]struct{}{}}
	if opt.Journal != nil {
		h.last = opt.Journal.Last
		opt.Journal.Follow(h.recorded)
	}
	opt.Dispatch.Observe(h.happened)
	opt.Approvals.View(questions{h})
	return h
}

func (h *hub) join(s *subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.readers) == 0 {
		h.covered = h.last()
		h.first++ // so that calls that began without readers precede s.next
	}
	h.readers[s] = struct{}{}
	s.next, s.seq = h.first+int64(len(h.events)), h.last()
}

func (h *hub) leave(s *subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.readers, s)
	if len(h.readers) == 0 {
		for len(h.events) > 0 {
			h.drop()
		}
		h.events = nil
	}
}

func (h *hub) publish(e event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	number, c, unread := h.first+int64(len(h.events)), h.calls[e.Key], len(h.readers) == 0
	ends := e.frame == nil && c.call == e.call
	switch {
	case e.topic == message.TopicStarted:
		h.calls[e.Key] = started{e.call, number, math.MaxInt64}
	case ends && unread:
		delete(h.calls, e.Key)
	case ends:
		h.calls[e.Key] = started{c.call, c.began, number}
	}
	if unread {
		return
	}
	e.size += smallEvent
	h.events = append(h.events, e)
	h.bytes += e.size
	for len(h.events) > maxEvents || h.bytes > maxEventBytes && len(h.events) > 1 {
		h.drop()
	}
	for s := range h.readers {
		s.poke()
	}
}

// drop removes the oldest event. The caller holds mu.
func (h *hub) drop() {
	old := h.events[0]
	h.events[0] = event{}
	h.events = h.events[1:]
	h.first++
	h.bytes -= old.size
	h.covered = max(h.covered, old.seq)
	if old.frame == nil && h.calls[old.Key].call == old.call {
		delete(h.calls, old.Key)
	}
}

// read returns up to most events for a subscriber, or the number of events that it missed.
func (h *hub) read(s *subscription, most int) (events []event, missed int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.next < h.first {
		return nil, h.first - s.next
	}
	events = h.events[s.next-h.first:]
	events = slices.Clone(events[:min(len(events), most)])
	s.next += int64(len(events))
	return events, 0
}

// catchUp switches a subscriber that has the journal up to s.seq to the kept events. It returns false if they begin
// later.
func (h *hub) catchUp(s *subscription) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.seq < h.covered {
		return false
	}
	s.next = max(s.next, h.first)
	for i, e := range slices.Backward(h.events) {
		if e.seq > 0 && e.seq <= s.seq {
			s.next = max(s.next, h.first+int64(i)+1)
			break
		}
	}
	return true
}

func (h *hub) running(key dispatch.Key) *dispatch.Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls[key].call
}

// runs returns the calls that started before a subscriber's position and had not ended there.
func (h *hub) runs(s *subscription) (calls []*dispatch.Call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.calls {
		if c.began < s.next && s.next <= c.end {
			calls = append(calls, c.call)
		}
	}
	return calls
}

func (h *hub) recorded(m journal.Message) {
	e := recordedEvent(m)
	e.size = len(m.Body)
	h.publish(e)
}

func recordedEvent(m journal.Message) event {
	e := event{
		Key: dispatch.Key{Client: m.Client, Agent: m.AgentID, ID: m.CallID}, topic: message.TopicRecord, seq: m.Seq, conversation: m.ConversationID,
		frame: json.RawMessage(m.Body),
	}
	switch m.Type {
	case "approval_request_message":
		e.topic = message.TopicRequest
	case "tool_return_message":
		e.topic = message.TopicReturn
	case "connection_decision":
		e.topic = message.TopicConnection
	}
	return e
}

// happened publishes an event of a call. Events that the journal contains are published by recorded.
func (h *hub) happened(c *dispatch.Call, what any) {
	e := event{Key: c.Key(), conversation: c.Client().ConversationID, tool: c.ToolName(), call: c, frame: what}
	switch what := what.(type) {
	case message.PolicyDecision:
		e.topic = message.TopicDecision
	case message.ToolQueued:
		e.topic = message.TopicQueued
	case message.ToolStarted:
		e.topic = message.TopicStarted
	case message.WaitingForInput:
		e.topic = message.TopicWaiting
	case dispatch.Final:
		e.frame = nil
		if what.Return != nil && what.Return.SeqID == 0 { // not in the journal
			h.publish(event{
				Key: e.Key, topic: message.TopicReturn, conversation: e.conversation, tool: e.tool,
				frame: *what.Return, size: 4 * len(what.Return.Result),
			})
		}
		e.size = c.MemoryBytes()
	default:
		return
	}
	h.publish(e)
}

type questions struct{ *hub }

func (q questions) Asked(r approval.Request[message.ApprovalRequest]) {
	e := questionEvent(message.TopicQuestion, r.Show, r.Show)
	e.size = 2*len(r.Show.ToolCall.Arguments) + len(r.Show.Preview.Text) + len(r.Show.Preview.Diff)
	q.publish(e)
}

func (q questions) Resolved(r approval.Request[message.ApprovalRequest], v approval.Verdict) {
	q.publish(questionEvent(message.TopicAnswer, r.Show, resolved(r, v)))
}

func questionEvent(topic string, r message.ApprovalRequest, frame any) event {
	return event{
		Key: dispatch.Key{Client: r.Client, Agent: r.AgentID, ID: r.CallID}, topic: topic, conversation: r.ConversationID, tool: r.ToolCall.ToolName, frame: frame,
	}
}
