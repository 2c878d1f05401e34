package message

import (
	"encoding/json"
	"slices"
)

// Topic is a kind of event that a subscriber may choose.
type Topic string

// The topics. Events of the first four are in the journal and have its numbers; the others are
// live only.
const (
	TopicRequest    Topic = "request"    // approval_request_message of an agent
	TopicReturn     Topic = "return"     // tool_return_message
	TopicConnection Topic = "connection" // connection_decision
	TopicRecord     Topic = "record"     // whatever else the journal holds
	TopicDecision   Topic = "decision"   // policy_decision
	TopicQuestion   Topic = "question"   // approval_request_message to approvers
	TopicAnswer     Topic = "answer"     // approval_resolved
	TopicQueued     Topic = "queued"     // tool_queued
	TopicStarted    Topic = "started"    // tool_started
	TopicWaiting    Topic = "waiting"    // waiting_for_input
	TopicOutput     Topic = "output"     // tool_output_delta
)

func topics() []Topic {
	return []Topic{
		TopicRequest, TopicReturn, TopicConnection, TopicRecord, TopicDecision, TopicQuestion, TopicAnswer,
		TopicQueued, TopicStarted, TopicWaiting, TopicOutput,
	}
}

// Subscribe asks for the events of everybody's calls. Empty filters select all.
type Subscribe struct {
	RequestID string
	After     *int64 // number of a message of the journal: those after it come first; nil: from now on
	Output    bool   // live output, too

	Client         string
	AgentID        string
	ConversationID string
	ToolName       string // as asked
	CallID         string
	Topics         []Topic
}

// Wants reports whether events of a topic are asked for.
func (s *Subscribe) Wants(t Topic) bool {
	if t == TopicOutput && !s.Output {
		return slices.Contains(s.Topics, t)
	}
	return len(s.Topics) == 0 || slices.Contains(s.Topics, t) || t == TopicOutput
}

// Unsubscribe ends the subscription of the connection.
type Unsubscribe struct{ RequestID string }

func (*Subscribe) inbound()   {}
func (*Unsubscribe) inbound() {}

// Subscribed answers subscribe. Events follow it.
type Subscribed struct {
	MessageType string `json:"message_type"` // "subscribed"
	RequestID   string `json:"request_id"`
	After       int64  `json:"after"` // messages of the journal after this number follow
}

// Unsubscribed answers unsubscribe. No event follows it.
type Unsubscribed struct {
	MessageType string `json:"message_type"` // "unsubscribed"
	RequestID   string `json:"request_id"`
}

// SubscriptionEvent is one event of a call.
type SubscriptionEvent struct {
	MessageType    string          `json:"message_type"` // "subscription_event"
	RequestID      string          `json:"request_id"`   // of the subscribe
	Topic          Topic           `json:"topic"`
	Seq            int64           `json:"seq,omitempty"` // number in the journal; absent: it is not there
	Client         string          `json:"client"`
	AgentID        string          `json:"agent_id,omitempty"`
	ConversationID string          `json:"conversation_id,omitempty"`
	Event          json.RawMessage `json:"event"` // the frame
}

// SubscriptionGap says that a slow subscriber has not been sent some events. Those that are in
// the journal follow.
type SubscriptionGap struct {
	MessageType string `json:"message_type"` // "subscription_gap"
	RequestID   string `json:"request_id"`
	Skipped     int64  `json:"skipped"` // events, of all calls; some may follow
	After       int64  `json:"after"`   // messages of the journal after this number follow
}

type wireSubscribe struct {
	MessageType    string  `json:"message_type"`
	RequestID      ident   `json:"request_id,omitempty" jsonschema:"repeated in the answer and in every event"`
	After          *int64  `json:"after,omitempty" jsonschema:"number of a message of the journal: those after it come first; absent: from now on"`
	Output         bool    `json:"output,omitempty" jsonschema:"live output, too"`
	Client         ident   `json:"client,omitempty" jsonschema:"name of a token"`
	AgentID        ident   `json:"agent_id,omitempty"`
	ConversationID ident   `json:"conversation_id,omitempty"`
	ToolName       ident   `json:"tool_name,omitempty" jsonschema:"as the call names it"`
	CallID         ident   `json:"tool_call_id,omitempty"`
	Topics         []ident `json:"topics,omitempty" jsonschema:"request, return, connection, record, decision, question, answer, queued, started, waiting, output; absent: all, output only with output: true"`
}

type wireUnsubscribe struct {
	MessageType string `json:"message_type"`
	RequestID   ident  `json:"request_id,omitempty"`
}

func (x *decoding) subscribe() {
	var w wireSubscribe
	if faults := append(bind(x.frame, &w), unknown(x.frame, w)...); x.refuse(faults) {
		return
	}
	if w.After != nil && *w.After < 0 {
		x.errorf(InvalidArguments, "after is the number of a message and cannot be negative")
		return
	}
	s := &Subscribe{
		RequestID: string(w.RequestID), After: w.After, Output: w.Output, Client: string(w.Client), AgentID: string(w.AgentID),
		ConversationID: string(w.ConversationID), ToolName: string(w.ToolName), CallID: string(w.CallID),
	}
	for _, t := range w.Topics {
		if !slices.Contains(topics(), Topic(t)) {
			x.errorf(InvalidArguments, "%.80q is no topic; the topics are %v", t, topics())
			return
		}
		s.Topics = append(s.Topics, Topic(t))
	}
	x.emit(s)
}

func (x *decoding) unsubscribe() {
	var w wireUnsubscribe
	if faults := bind(x.frame, &w); !x.refuse(faults) {
		x.emit(&Unsubscribe{RequestID: string(w.RequestID)})
	}
}
