package journal

import "time"

// State is how far a call is. It only advances.
type State string

// The states in order. From Running on a call may have had effects. Intended survives a crash of
// the daemon, not of the machine; see Journal.Unfinished.
const (
	Received  State = "received"
	Waiting   State = "waiting" // for a person
	Decided   State = "decided"
	Intended  State = "intended" // may run, but has not
	Running   State = "running"
	Returned  State = "returned"
	Delivered State = "delivered"
)

// Key is the number of a call in this journal, from 1. The zero Key is none.
type Key int64

// Call is a call as requested. Client, AgentID and ID are its identity: ids may repeat across the
// agents of a client.
type Call struct {
	Client string // who asks
	ID     string // tool_call_id

	AgentID        string
	ConversationID string
	RunID          string
	StepID         string
	OTID           string
	GroupID        string
	SenderID       string
	Workspace      string // canonical root; "" if unknown
	RequestID      string // of the request message; need not be unique
	Dialect        string
	Tool           string // as requested
	Canonical      string // the tool's own name, if known
	Arguments      []byte
	ArgsHash       string // compares the arguments of repeated ids
	BackgroundOf   string // id of the call that started this one in the background
	Kept           string // what another daemon needs to continue a call that has not begun; "" = impossible

	// MessageType and Message are the request for list_messages: a JSON object with this call
	// alone.
	MessageType string
	Message     []byte
}

// Decision is why a call may or may not run.
type Decision struct {
	Action  string // "allow", "ask" or "deny"
	By      string // "policy", "person", "beforehand" or "deadline"
	Rule    string
	Source  string // file:line of the rule
	Reason  string
	Person  string // who answered, if By is "person" or "beforehand"
	Widened string // escalation that the person granted, as JSON; "" = none
}

// Outcome is how a call ended. Empty fields keep what is recorded.
type Outcome struct {
	Status    string // "success" or "error"
	ErrorType string
	ExitCode  *int // nil if no process exited
	Signal    string
	Sandbox   string // sandbox of the run, as JSON
	Canonical string
	OTID      string // of the return message
	Output    string // checksum of the output kept beside the journal
	Decision  Decision
}

// Record is a call in the journal.
type Record struct {
	Call // without MessageType, Message and Arguments; see Journal.Arguments
	Key

	State    State
	Decision Decision
	Daemon   string // process that owns the call; see Self
	Process  string // as given to Start
	SpoolDir string // where its output was kept when it started; "" = it started no command

	Status    string
	ErrorType string
	ExitCode  *int
	Signal    string
	Sandbox   string
	Output    string // as in Outcome
	Result    []byte // return message; empty until Returned
	Lost      error  // ErrTampered if a note replaces a text

	// Zero until it happens. DecidedAt of a waiting call is when the question was first asked.
	ReceivedAt, DecidedAt, IntendedAt, StartedAt, ReturnedAt, DeliveredAt time.Time
}

// The directions of messages.
const (
	In  = "in"
	Out = "out"
)

// Message is a recorded message. The journal writes its own "id", "seq_id", "date" and
// "message_type" into the body of an incoming one, because clients' ids need not be unique.
type Message struct {
	Seq       int64  // assigned by the journal: increasing, never reused
	ID        string // unique; may be empty for an incoming message
	Time      time.Time
	Type      string
	Direction string // In or Out

	Client         string
	AgentID        string
	ConversationID string
	RunID          string
	StepID         string
	OTID           string
	GroupID        string
	SenderID       string
	CallID         string
	Status         string // of a return
	Body           []byte // JSON object
	Lost           error  // ErrTampered if a note replaces a text of Body
}
