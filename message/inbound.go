package message

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// These types are both frames and results of Decode. The schema requires each field without omitempty.

// Cancel stops one call, or all calls that the client may stop.
type Cancel struct {
	MessageType string `json:"message_type"`
	CallID      string `json:"tool_call_id,omitempty" wire:"id" jsonschema:"this or all"`
	All         bool   `json:"all,omitempty" jsonschema:"every call of this client; of all clients for an approver or admin"`
	Reason      string `json:"reason,omitempty"`

	AgentID *string `json:"agent_id,omitempty" wire:"id" jsonschema:"whose calls alone: several agents may use the same id"`
}

func (c *Cancel) check() string {
	if (c.CallID != "") == c.All {
		return "cancel needs either tool_call_id or all: true"
	}
	return ""
}

// ListMessages requests journaled messages: those older than Before and newer than After, which are message ids, in
// either order.
type ListMessages struct {
	MessageType    string   `json:"message_type"`
	RequestID      string   `json:"request_id,omitempty" wire:"id" jsonschema:"repeated in the answer"`
	Before         string   `json:"before,omitempty" wire:"id" jsonschema:"id of a message: older ones"`
	After          string   `json:"after,omitempty" wire:"id" jsonschema:"id of a message: newer ones"`
	Limit          int      `json:"limit,omitempty" jsonschema:"1 to 1000 (100)"`
	Order          string   `json:"order,omitempty" jsonschema:"desc (default) or asc"`
	RunID          string   `json:"run_id,omitempty" wire:"id"`
	StepID         string   `json:"step_id,omitempty" wire:"id"`
	AgentID        string   `json:"agent_id,omitempty" wire:"id"`
	ConversationID string   `json:"conversation_id,omitempty" wire:"id"`
	CallID         string   `json:"tool_call_id,omitempty" wire:"id"`
	OTID           string   `json:"otid,omitempty" wire:"id"`
	GroupID        string   `json:"group_id,omitempty" wire:"id"`
	SenderID       string   `json:"sender_id,omitempty" wire:"id"`
	Workspace      string   `json:"workspace,omitempty" jsonschema:"absolute path of the workspace of the calls, as hello_ack lists it"`
	MessageTypes   []string `json:"message_types,omitempty" wire:"id"`
	Status         string   `json:"status,omitempty" jsonschema:"success or error"`
}

func (l *ListMessages) check() string {
	switch {
	case l.Limit < 1 || l.Limit > 1000:
		return "limit must be from 1 to 1000"
	case l.Order != "" && l.Order != "asc" && l.Order != "desc":
		return "order must be asc or desc"
	case l.Status != "" && l.Status != "success" && l.Status != "error":
		return "status must be success or error"
	case l.Workspace != "" && !filepath.IsAbs(l.Workspace):
		return "workspace must be the absolute path of one, as hello_ack lists it"
	}
	return ""
}

// ListApprovals requests the pending approval requests.
type ListApprovals struct {
	MessageType string `json:"message_type"`
	RequestID   string `json:"request_id,omitempty" wire:"id"`
}

// ListCalls requests the unanswered calls.
type ListCalls struct {
	MessageType string `json:"message_type"`
	RequestID   string `json:"request_id,omitempty" wire:"id"`
	CallID      string `json:"tool_call_id,omitempty" wire:"id" jsonschema:"only calls with this id"`
	All         bool   `json:"all,omitempty" jsonschema:"also the latest that are answered"`
}

// GetOutput requests a call's recorded output.
type GetOutput struct {
	MessageType string  `json:"message_type"`
	RequestID   string  `json:"request_id,omitempty" wire:"id"`
	CallID      string  `json:"tool_call_id" wire:"id"`
	AgentID     *string `json:"agent_id,omitempty" wire:"id" jsonschema:"whose call: several agents may use the same id"`
	Stream      string  `json:"stream,omitempty" jsonschema:"stdout, stderr or combined (default)"`
	Offset      int64   `json:"offset,omitempty" jsonschema:"bytes of the stream"`
	Limit       int64   `json:"limit,omitempty" jsonschema:"bytes; 0 is the daemon's default"`
}

func (g *GetOutput) check() string {
	if g.Stream == "" {
		g.Stream = "combined"
	}
	switch {
	case g.CallID == "":
		return "get_output needs a tool_call_id"
	case g.Stream != "stdout" && g.Stream != "stderr" && g.Stream != "combined":
		return "stream must be stdout, stderr or combined"
	case g.Offset < 0 || g.Limit < 0:
		return "offset and limit count bytes and cannot be negative"
	}
	return ""
}

// Hello is a client's optional greeting.
type Hello struct {
	MessageType string `json:"message_type"`
	Protocol    int    `json:"protocol,omitempty" jsonschema:"1"`
	Client      struct {
		Name    string `json:"name,omitempty" wire:"id"`
		Version string `json:"version,omitempty" wire:"id"`
	} `json:"client,omitzero"`
	Output    string `json:"output,omitempty" jsonschema:"none, delta (default) or binary"`
	Workspace string `json:"workspace,omitempty" jsonschema:"absolute path in a registered workspace; the daemon's own when absent"`
	Resume    *struct {
		ConnID       string `json:"conn_id,omitempty" wire:"id" jsonschema:"of its hello_ack; the latest connection when absent"`
		LastEventSeq int64  `json:"last_event_seq,omitempty" jsonschema:"of the last delta that came"`
	} `json:"resume,omitempty" jsonschema:"to go on where an earlier connection ended"`
}

func (h *Hello) check() string {
	if h.Output == "" {
		h.Output = "delta"
	}
	if h.Protocol == 0 {
		h.Protocol = 1
	}
	switch {
	case !slices.Contains([]string{"none", "delta", "binary"}, h.Output):
		return "output must be none, delta or binary"
	case h.Protocol != 1:
		return fmt.Sprintf("toold speaks protocol 1, not %d", h.Protocol)
	}
	return ""
}

// Ping requests a pong with its nonce.
type Ping struct {
	MessageType string `json:"message_type"`
	Nonce       string `json:"nonce,omitempty" wire:"id"`

	TypeAlias bool `json:"-"` // the pong needs a "type" member too
}

// Topics of events. The first four are journaled, the others only sent live.
const (
	TopicRequest    = "request" // from an agent
	TopicReturn     = "return"
	TopicConnection = "connection"
	TopicRecord     = "record" // other journaled messages
	TopicDecision   = "decision"
	TopicQuestion   = "question" // to approvers
	TopicAnswer     = "answer"
	TopicQueued     = "queued"
	TopicStarted    = "started"
	TopicWaiting    = "waiting"
	TopicOutput     = "output"
)

func topics() []string {
	field, _ := reflect.TypeFor[SubscriptionEvent]().FieldByName("Topic")
	return strings.Split(field.Tag.Get("enum"), ",")
}

// Subscribe requests events of all clients' calls. Empty filters select all.
type Subscribe struct {
	MessageType    string   `json:"message_type"`
	RequestID      string   `json:"request_id,omitempty" wire:"id" jsonschema:"repeated in the answer and in every event"`
	After          *int64   `json:"after,omitempty" jsonschema:"number of a message of the journal: those after it come first; absent: from now on"`
	Output         bool     `json:"output,omitempty" jsonschema:"live output, too"`
	Client         string   `json:"client,omitempty" wire:"id" jsonschema:"name of a token"`
	AgentID        string   `json:"agent_id,omitempty" wire:"id"`
	ConversationID string   `json:"conversation_id,omitempty" wire:"id"`
	ToolName       string   `json:"tool_name,omitempty" wire:"id" jsonschema:"as the call names it"`
	CallID         string   `json:"tool_call_id,omitempty" wire:"id"`
	Topics         []string `json:"topics,omitempty" wire:"id" jsonschema:"request, return, connection, record, decision, question, answer, queued, started, waiting, output; absent: all, output only with output: true"`
}

func (s *Subscribe) check() string {
	if s.After != nil && *s.After < 0 {
		return "after is the number of a message and cannot be negative"
	}
	for _, t := range s.Topics {
		if !slices.Contains(topics(), t) {
			return fmt.Sprintf("%.80q is no topic; the topics are %v", t, topics())
		}
	}
	return ""
}

// Wants reports whether the subscription selects a topic.
func (s *Subscribe) Wants(t string) bool {
	if named := slices.Contains(s.Topics, t); named || t == TopicOutput {
		return named || s.Output
	}
	return len(s.Topics) == 0
}

// Unsubscribe ends the connection's subscription.
type Unsubscribe struct {
	MessageType string `json:"message_type"`
	RequestID   string `json:"request_id,omitempty" wire:"id"`
}
