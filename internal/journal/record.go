package journal

import (
	"time"

	"github.com/toold/toold/message"
)

// State is the progress of a call. It only advances.
type State string

// The states in order. From Running on a call may have had effects. After a crash of the machine Intended counts as
// Running; see Journal.Unfinished.
const (
	Received  State = "received"
	Waiting   State = "waiting" // for approval
	Decided   State = "decided"
	Intended  State = "intended" // will run, but has not
	Running   State = "running"
	Returned  State = "returned"
	Delivered State = "delivered"
)

// Key is the number of a call in this journal, from 1. The zero Key means no call.
type Key int64

// Call is a call as requested. Client, AgentID and ID identify it: agents of one client may use the same id.
type Call struct {
	Client         string // name of the client
	ID             string // tool_call_id
	message.Origin        // of the request message; its ID may repeat
	Workspace      string // canonical root; "" if unknown
	Dialect        string
	Tool           string // as requested
	Canonical      string // canonical name of the tool, if known
	Arguments      []byte
	ArgsHash       string // to compare the arguments of calls with the same id
	BackgroundOf   string // id of the call that started this one in the background
	Kept           string // what another daemon needs to continue a call that has not started; "" = impossible

	// MessageType and Message are the request as list_messages shows it: a JSON object with only this call.
	MessageType string
	Message     []byte
}

// Decision says why a call may or may not run.
type Decision struct {
	Action  string // "allow", "ask" or "deny"
	By      string // "policy", "person", "beforehand" or "deadline"
	Rule    string
	Source  string // file:line of the rule
	Reason  string
	Person  string // who decided, if By is "person" or "beforehand"
	Widened string // escalation that the person approved, as JSON; "" = none
}

// Outcome is how a call ended. Empty fields do not change the record.
type Outcome struct {
	Status    string // "success" or "error"
	ErrorType string
	ExitCode  *int // nil if no process exited
	Signal    string
	Sandbox   string // sandbox of the run, as JSON
	Canonical string
	OTID      string // of the return message
	Output    string // checksum of the output stored next to the journal
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
	SpoolDir string // directory of its output when it started; "" = it started no command

	Status    string
	ErrorType string
	ExitCode  *int
	Signal    string
	Sandbox   string
	Output    string // as in Outcome
	Result    []byte // return message; empty until Returned
	Lost      error  // ErrTampered if a text was lost and replaced by a note

	// Zero until the event. DecidedAt of a waiting call is when its approval was first requested.
	ReceivedAt, DecidedAt, IntendedAt, StartedAt, ReturnedAt, DeliveredAt time.Time
}

// The directions of messages.
const (
	In  = "in"
	Out = "out"
)

// Message is a recorded message. The journal writes its own "id", "seq_id", "date" and "message_type" into the body of
// an incoming message, because clients may repeat ids.
type Message struct {
	Seq            int64 // assigned by the journal: increasing, never reused
	message.Origin       // its ID is unique; it may be empty for an incoming message
	Time           time.Time
	Type           string
	Direction      string // In or Out
	Client         string
	CallID         string
	Status         string // of a return
	Body           []byte // JSON object
	Lost           error  // ErrTampered if a text of Body was lost and replaced by a note
}
