package journal

import "time"

// State is how far a call is. It only grows.
type State string

// The states, in their order. A call whose return is stored is Returned; from
// Running on it may have had effects. What is Intended is known after a crash of the
// daemon, not after one of the machine: see Journal.Unfinished.
const (
	Received  State = "received"
	Waiting   State = "waiting" // for a person
	Decided   State = "decided"
	Intended  State = "intended" // may run; nothing of it has
	Running   State = "running"
	Returned  State = "returned"
	Delivered State = "delivered"
)

// Key names a call's row in this journal. The zero Key names none.
type Key int64

// Call is a call as it was asked. Client, AgentID and ID together are its
// identity: weak generators repeat ids across the agents of one client.
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
	Workspace      string // the canonical root of the workspace that it is in; "" where that was never found
	RequestID      string // of the asking message, as sent; need not be unique
	Dialect        string
	Tool           string // as asked
	Canonical      string // the tool's own name, if it is known already
	Arguments      []byte
	ArgsHash       string // tells whether a repeated id means the same call
	BackgroundOf   string // id of the call after whose return this one runs on; empty for others
	Kept           string // what another daemon needs to go on with a call that this one has not begun; "" = it cannot

	// MessageType and Message are what list_messages shows for the request: a
	// JSON object with this one call, not the whole batch it came in.
	MessageType string
	Message     []byte
}

// Decision is why a call may run or may not.
type Decision struct {
	Action  string // "allow", "ask" or "deny"
	By      string // "policy", "person", "beforehand" or "deadline"
	Rule    string
	Source  string // file:line of the rule
	Reason  string
	Person  string // who answered, when By is "person" or "beforehand"
	Widened string // what that person has added to the sandbox of this call, as JSON; "" = nothing
}

// Outcome is how a call ended. Empty fields keep what is recorded.
type Outcome struct {
	Status    string // "success" or "error"
	ErrorType string
	ExitCode  *int // nil when no process exited
	Signal    string
	Sandbox   string // what held while it ran, as JSON
	Canonical string
	OTID      string // of the return message
	Output    string // a sum of the output that is kept beside the journal; empty for none
	Decision  Decision
}

// Record is a call as the journal knows it.
type Record struct {
	Call // without MessageType and Message; Journal.Arguments has the Arguments
	Key

	State    State
	Decision Decision
	Daemon   Identity // whose call it is
	Process  string   // identity of the call's process, as given to Start
	SpoolDir string

	Status    string
	ErrorType string
	ExitCode  *int
	Signal    string
	Sandbox   string
	Result    []byte // the return message; empty until Returned

	// Each is the zero time until it happens. DecidedAt of a call that waits is when the
	// question was first asked.
	ReceivedAt, DecidedAt, IntendedAt, StartedAt, ReturnedAt, DeliveredAt time.Time
}

// Direction is which way a message went.
type Direction string

// The directions.
const (
	In  Direction = "in"
	Out Direction = "out"
)

// Message is one row of the record of messages.
//
// The body of a message that came in is recorded with the journal's own "id",
// "seq_id", "date" and "message_type" in it, whatever it said before: ids of
// clients need not be unique. That of a message that goes out is kept as it is.
type Message struct {
	Seq       int64  // set by the journal: monotonic, never used again
	ID        string // unique; may be left empty for a message that came in
	Time      time.Time
	Type      string
	Direction Direction

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
}
