// Package tools defines what a tool is: how a call becomes an invocation that
// can be judged, shown and run, always as the same value.
//
// It knows nothing of wires, dialects or policies' rules.
package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/widen"
)

// A Tool turns the arguments of a call into an Invocation.
type Tool interface {
	// Definition describes the tool. It is constant.
	Definition() Definition
	// Build parses the arguments strictly (see Decode) and resolves every path.
	// It changes nothing. A fault of the caller is an *ArgumentError.
	Build(args json.RawMessage) (Invocation, error)
}

// An Invocation is one parsed call. What Effects tells, what Preview shows and
// what Execute runs come from the same parse; nothing is read again from text.
type Invocation interface {
	// Effects lists everything the call can do, as far as it is known. Never
	// empty: a call that does nothing known is Opaque.
	Effects() []policy.Effect
	// Preview renders the call for a person who decides on it.
	Preview() Preview
	// Execute runs the call once and returns when nothing of it is left
	// running. It obeys ctx; context.Cause(ctx) tells why it was stopped.
	Execute(ctx context.Context, io IO) Result
}

// A Located is a Tool whose calls may name the directory or the file that they are about.
type Located interface {
	Tool
	// Location returns that path as the call names it, which may be relative; "" when it
	// names none, or cannot be understood. runs reports that a command runs there.
	Location(args json.RawMessage) (path string, runs bool)
}

// A Detachable is an Invocation whose caller may want it to run on after the
// call's return, as a call of its own.
type Detachable interface {
	Invocation
	// InBackground tells whether this call wants that. It is constant.
	InBackground() bool
}

// A Preparing is an Invocation of whose work a part can be done before it is
// certain that it will run.
type Preparing interface {
	Invocation
	// Prepare makes ready what Execute needs. It does not wait, and nothing of the
	// call runs. Of io it may use Profile, Widen, Granted, Policy and Opened, which are
	// those of Execute. Execute or Drop follows, when it has returned.
	Prepare(io IO)
	// Drop gives up what was made ready. After Execute it does nothing.
	Drop()
}

// A Reading is an Invocation that may only read. Such a call may run before it is
// on the disk that it does, if nothing of it is told before.
type Reading interface {
	Invocation
	// OnlyReads tells whether this call changes nothing, prints nothing and starts
	// no process. It is constant.
	OnlyReads() bool
}

// An Elsewhere is an Invocation that decides about a call of another program, which carries
// it out where toold confines nothing.
type Elsewhere interface {
	Invocation
	// Elsewhere reports that. It is constant.
	Elsewhere() bool
}

// A Confined is an Invocation that works in a sandbox which a person may widen for it.
type Confined interface {
	Invocation
	// Widens narrows what may be added to the sandbox of any call to what has a meaning
	// for this one.
	Widens(widen.Bounds) widen.Bounds
}

// Definition is what a model is told about a tool.
type Definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // JSON Schema of the arguments, canonical names only
}

// Preview is a call shown to a person.
type Preview struct {
	Text string `json:"text"`           // the whole command, or a sentence that says what is done
	Diff string `json:"diff,omitempty"` // unified diff, for calls that change a file
}

// Stream names one of the two output streams of a call.
type Stream int

// The streams. Combined is for reading only: both in the order in which they
// came.
const (
	Stdout Stream = iota
	Stderr
	Combined
)

// String returns the stream's name on the wire.
func (s Stream) String() string {
	switch s {
	case Stderr:
		return "stderr"
	case Combined:
		return "combined"
	default:
		return "stdout"
	}
}

// IO is what a running Invocation has of its surroundings. The zero value
// discards everything and gives no input.
type IO struct {
	// Output takes live output. It never blocks; calls are serialised by the
	// implementation. p is not retained.
	Output func(s Stream, p []byte)
	// Started is called at most once, when a process of the call runs.
	Started func(Started)
	// Waiting is called when a program of the call begins to wait for input and
	// when it goes on. It must not block.
	Waiting func(Waiting)
	// Input delivers what the caller sends to the running call. Nil, or closed,
	// when there is nothing more. An Invocation that takes no input ignores it.
	Input <-chan Input
	// Connect decides whether a process of the call may contact a host, a name or an
	// address, at one of the ports; nil lets it. It may wait for a person and ends
	// with ctx. It may be called from several goroutines while Execute runs. Nil
	// refuses all.
	Connect func(ctx context.Context, host string, ports []uint16) error
	// Revoked waits until a host that Connect has let through must not be contacted at
	// the port any more, and returns why; nil when ctx ends first.
	Revoked func(ctx context.Context, host string, port uint16) error
	// Judge decides an effect of the call that shows only while it runs, such as the
	// read of a file that a search comes across. Only what it allows may happen. Nil
	// allows nothing. It may be called from several goroutines while Execute runs.
	Judge func(policy.Effect) policy.Decision
	// Calls are the other calls of the same client, agent and conversation. Nil: there
	// are none.
	Calls Calls
	// Loopback has the servers of background calls that this call may reach; with
	// Lends, the id of this call, its own are among them. Nil = none.
	Loopback *sandbox.Loopback
	Lends    string
	// Profile names the sandbox that the policy wants for this call; "" means
	// the one that is configured. It only tightens. Policies name one for
	// commands; an Invocation that starts no process ignores it.
	Profile string
	// Limit is what the client lets this call do at most.
	Limit sandbox.Limit
	// Widen is what a person has added to the sandbox of this call; nil = nothing. An
	// Invocation that is not Confined ignores it. It stays the caller's.
	Widen *widen.Grant
	// Granted are the files that a person has said yes to when the call asked to
	// write them, canonical. An Invocation that does exactly what was shown may write
	// them although they are protected.
	Granted []string
	// Policy is the one in force for this call: what its rules keep from the programs of
	// the call, the sandbox masks. Nil masks nothing. Opened are the effects of the call
	// that a person has said yes to, for which no mask stays.
	Policy *policy.Policy
	Opened []policy.Effect
}

// Started tells that a process of the call runs.
type Started struct {
	PID      int    // of the sandbox's helper in the daemon's pid namespace
	Identity string // survives a restart: pid, start time and boot id
	Terminal string // "split", "single" or "off"
	Sandbox  sandbox.Report
}

// Waiting tells that a program of the call waits for input.
type Waiting struct {
	Waits   bool   // false: it goes on
	Kind    string // "line", "password" or "tui"
	Since   time.Time
	PID     int // as the call sees it
	Command string
}

// Input is one thing that a caller sends to a running call: data, the end, a
// signal or a size.
type Input struct {
	Data   []byte // bytes for standard input
	EOF    bool   // standard input ends
	Signal string // e.g. "SIGINT", to the foreground process group
	Leader bool   // Signal goes to the command itself alone
	Resize *Size

	// Taken, if set, is to be called when Data was given to the command. The
	// Invocation keeps what it was not; the sender bounds that.
	Taken func()
}

// Size is a terminal window's size in character cells.
type Size struct{ Rows, Cols uint16 }

// Failure classifies a call that did not simply run to its end. The zero value
// means that it did (a non-zero exit code is not a failure of the call). The
// values are the wire's error_type.
type Failure string

// The failures an Invocation can end with. Refusals (policy, people, limits)
// are dispatch's.
const (
	InvalidArguments   Failure = "invalid_arguments"
	Timeout            Failure = "timeout"
	Cancelled          Failure = "cancelled" // dispatch refines it by the cause of ctx
	InputNeeded        Failure = "input_needed"
	SandboxUnavailable Failure = "sandbox_unavailable"
	ProtectedPath      Failure = "protected_path"
	Internal           Failure = "internal_error"
)

// Result is how an Invocation ended.
type Result struct {
	// Text is what the model reads. For a tool with live output it is the first
	// line(s) only (exit code, leftovers, notices): the output itself is taken
	// from the capture. For others it is the whole answer.
	Text    string
	IsError bool    // the call did not do what was asked
	Failure Failure // set when something other than the command decided the end
	Diff    string  // unified diff of what was changed
	File    *File   // what was done to a file, by tools that work on one
	Files   []File  // what was done to each, where a call changed several

	// The rest is set by tools that run processes.
	Exit      *Exit
	Terminal  string
	Order     string          // of the lines of both streams in Combined: "exact", as they were written, or "arrival"
	Sandbox   *sandbox.Report // set by every tool: what held while it ran
	Leftovers []Process       // outlived the command and were killed

	// Denials are what the sandbox kept from the call. Text tells them already.
	Denials []sandbox.Denial
}

// Calls are the calls that an Invocation may look at and stop. The methods may be
// called from several goroutines.
type Calls interface {
	// Find returns a call by its tool_call_id; nil when there is no such call.
	Find(ctx context.Context, id string) (OtherCall, error)
	// List returns the calls that are not answered, the oldest first; with ended, the
	// latest that ran a command and are answered come before them.
	List(ctx context.Context, ended bool) ([]CallStatus, error)
}

// An OtherCall is one call among Calls.
type OtherCall interface {
	// Status is how far it is.
	Status() CallStatus
	// Changed returns a channel that is closed when there is more output or another
	// status than now. Take it before looking, so that nothing is missed in between. For
	// a call that has ended it is nil.
	Changed() <-chan struct{}
	// ReadAt returns at most most bytes of a stream, those at offset or, where these are
	// not kept, the oldest later ones. from is the offset of the first.
	ReadAt(s Stream, offset int64, most int) (p []byte, from int64)
	// Stop stops the call. The channel is closed when it has ended.
	Stop(reason string) (ended <-chan struct{})
}

// CallStatus is how far a call is.
type CallStatus struct {
	ID         string
	Background bool
	State      string // "received", "waiting", "queued", "running" or "ended"
	What       string // the first line of what it does; "" of an ended one
	Started    time.Time
	Bytes      [3]int64 // by Stream, Combined included
	End        string   // how it ended: "exit code 0"; "" until then
}

// File is what a call did to one file.
type File struct {
	Path         string // canonical
	Operation    string // "read", "create", "write", "edit", "remove" or "move"
	From         string // where a file was that was moved; canonical
	Bytes        int64  // of the content that was returned, or that the file has now
	Lines        int64  // the same, in lines
	Replacements int64  // that an edit made
	TotalLines   *int64 // that a file has which was read; nil = not known
	NextOffset   int64  // the first line that was not returned; 0 = there is none
}

// Process is one process of a call.
type Process struct {
	PID     int    // as the command saw it
	Command string // its command line
}

// Exit is how the command of a call ended.
type Exit struct {
	Code   int    // 128+n when a signal ended it
	Signal string // "SIGTERM"; empty when it exited
}

// ArgumentError is a fault in the arguments of a call.
type ArgumentError struct {
	Field   string // the argument's name; empty when the whole object is at fault
	Problem string // what is wrong and what was expected, for the model to mend
}

func (e *ArgumentError) Error() string {
	if e.Field == "" {
		return "invalid arguments: " + e.Problem
	}
	return fmt.Sprintf("invalid argument %q: %s", e.Field, e.Problem)
}
