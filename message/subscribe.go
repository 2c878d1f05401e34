package message

import (
	"encoding/json"
)

type subscribed struct {
	MessageType string `json:"message_type"`
	RequestID   string `json:"request_id"`
	After       int64  `json:"after"` // journal messages after this number follow
}

// Answer returns the subscribed frame for s. Journaled messages after this number follow.
func (s *Subscribe) Answer(after int64) any { return subscribed{"subscribed", s.RequestID, after} }

type unsubscribed struct {
	MessageType string `json:"message_type"`
	RequestID   string `json:"request_id"`
}

// Answer returns the unsubscribed frame for u.
func (u *Unsubscribe) Answer() any { return unsubscribed{"unsubscribed", u.RequestID} }

// SubscriptionEvent is an event of a call.
type SubscriptionEvent struct {
	MessageType    string          `json:"message_type"`
	RequestID      string          `json:"request_id"`
	Topic          string          `json:"topic" enum:"request,return,connection,record,decision,question,answer,queued,started,waiting,output"`
	Seq            int64           `json:"seq,omitempty"` // number in the journal; absent: not journaled
	Client         string          `json:"client"`
	AgentID        string          `json:"agent_id,omitempty"`
	ConversationID string          `json:"conversation_id,omitempty"`
	Event          json.RawMessage `json:"event"`
}

// SubscriptionGap reports skipped events. Those that are journaled follow.
type SubscriptionGap struct {
	MessageType string `json:"message_type"`
	RequestID   string `json:"request_id"`
	Skipped     int64  `json:"skipped"` // number of events of all calls; some may follow
	After       int64  `json:"after"`   // journal messages after this number follow
}
