// Package tools defines what a tool is: how a call becomes an Invocation that is judged, shown and
// run as the same value. It does not depend on the wire, dialects or policy rules.
package tools

import (
	"context"
	"encoding/json"
	"time"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/escalation"
	"github.com/toold/toold/sandbox/launch"
	"github.com/toold/toold/tools/argument"
)

// A Tool turns the arguments of a call into an Invocation.
type Tool interface {
	// Definition is constant.
	Definition() Definition
	// Build parses the arguments strictly (see argument.Decode), resolves every path and changes
	// nothing. A fault of the caller is an *argument.Error.
	Build(args json.RawMessage) (Invocation, error)
}

// Simple is a Tool whose arguments are decoded into an A.
type Simple[A any] struct {
	About Definition
	New   func(A) (Invocation, error)
}

// Definition returns About.
func (s Simple[A]) Definition() Definition { return s.About }

// Build decodes the arguments and calls New.
func (s Simple[A]) Build(args json.RawMessage) (Invocation, error) {
	a, err := argument.Decode[A](args)
	if err != nil {
		return nil, err
	}
	return s.New(a)
}

// An Invocation is one parsed call. It never reads the text of the call again.
type Invocation interface {
	// Effects lists everything that the call can do. It is never empty: an unknown call is Opaque.
	Effects() []policy.Effect
	// Text describes the call to a person. It is constant.
	Text() string
	// Traits are constant.
	Traits() Traits
	// Execute runs the call once and returns when none of its processes is left. It obeys ctx;
	// context.Cause(ctx) is why it was stopped.
	Execute(ctx context.Context, io IO) Result
}

// A Located is a Tool whose calls may name a directory or files.
type Located interface {
	Tool
	// Location returns the paths as written, possibly relative; none if the arguments are invalid.
	// runs reports that a command runs there.
	Location(args json.RawMessage) (paths []string, runs bool)
}

// Traits decide how an Invocation is run and recorded.
type Traits struct {
	Background bool // continues after the return, as a separate call
	// ReadOnly: it changes nothing, prints nothing and starts no process. It may run before it is
	// journaled, provided nothing is sent to the client first.
	ReadOnly bool
	// Elsewhere: another program carries the call out, unconfined by toold.
	Elsewhere bool
}

// A Preparing can start work before it is certain to run. Execute calls IO.Starting.
type Preparing interface {
	Invocation
	// Prepare starts what Execute needs, until ctx ends; nothing of the call runs. Of io it may use
	// Profile, Escalation, Approved, Policy and Opened, which are the same for Execute. The caller then
	// calls Execute or Drop.
	Prepare(ctx context.Context, io IO)
	// Drop releases what Prepare started. After Execute it does nothing.
	Drop()
}

// A Previewed is an Invocation that shows approvers more than its Text.
type Previewed interface {
	Invocation
	// Preview renders what the call would do now, as far as possible before ctx ends. Execute does that
	// or nothing.
	Preview(ctx context.Context) Preview
}

// A Confined has a sandbox that a person may extend.
type Confined interface {
	Invocation
	// EscalationLimits reduces the limits to those useful for this call.
	EscalationLimits(escalation.Limits) escalation.Limits
}

// Definition describes a tool to a model.
type Definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // JSON Schema, canonical names only
	Hidden      bool            `json:"-"`          // called by other parts of toold only
}

// Preview shows a call to a person.
type Preview struct {
	Text string `json:"text"`           // the command, or a sentence
	Diff string `json:"diff,omitempty"` // unified diff of a change
}

// Stream is an output stream of a call.
type Stream int

// The streams. Combined is both in order of arrival.
const (
	Stdout Stream = iota
	Stderr
	Combined
)

// String returns the name on the wire.
func (s Stream) String() string {
	return [...]string{"stdout", "stderr", "combined"}[s]
}

// IO connects a running Invocation to its caller. The zero value discards output and has no input.
type IO struct {
	// Output receives live output, one call at a time. It does not block or retain p.
	Output func(s Stream, p []byte)
	// Starting is called before the call may have an effect, with the identity of the process that
	// will run it; again if that changes. After an error nothing may run. May be nil.
	Starting func(identity string) error
	// Started is called at most once, when a process of the call runs.
	Started func(Started)
	// Waiting is called when a program starts or stops waiting for input. It must not block.
	Waiting func(Waiting)
	// Input delivers the caller's input; nil or closed if there is no more.
	Input <-chan Input
	// Connect decides whether the call may contact a host, a name or an address, at one of the ports;
	// nil allows it. It may wait for a person, ends with ctx and is called concurrently. A nil Connect
	// refuses all.
	Connect func(ctx context.Context, host string, ports []uint16) error
	// Revoked waits until a host that Connect allowed must not be contacted at the port any more, and
	// returns why, or nil if ctx ends first.
	Revoked func(ctx context.Context, host string, port uint16) error
	// Judge decides an effect that becomes known while the call runs, such as a file of a search. It
	// is called concurrently. A nil Judge allows nothing.
	Judge func(policy.Effect) policy.Decision
	// Calls are the other calls of the conversation; may be nil.
	Calls Calls
	// Loopback has the servers of background calls that this call may reach; nil = none. If Lends,
	// the id of this call, is set, its own servers are added.
	Loopback *launch.Loopback
	Lends    string
	// Profile names the sandbox that the policy requires; "" = the configured one. It only tightens.
	Profile string
	// Limit is the most that the client lets this call do.
	Limit sandbox.Limit
	// Escalation is what a person added to the sandbox of this call; may be nil. Only a Confined uses
	// it. The caller closes it.
	Escalation *escalation.Escalation
	// Approved are the canonical paths whose writing a person approved. An Invocation that does
	// exactly what was shown may write them although they are protected.
	Approved []string
	// Policy has the rules that hide files from programs; nil masks nothing. Opened are the effects
	// that a person approved; they are not masked.
	Policy *policy.Policy
	Opened []policy.Effect
}

// Started reports that a process of the call runs.
type Started struct {
	PID      int    // of the helper in the daemon's pid namespace
	Terminal string // "split", "single" or "off"
	Sandbox  sandbox.Report
}

// The executor's types.
type (
	Waiting = executor.Waiting
	Input   = executor.Input
)

// Failure is the error_type of a call that did not run to its end; "" if it did, whatever its exit
// code.
type Failure string

// The failures of an Invocation. Package dispatch has the refusals.
const (
	InvalidArguments   Failure = "invalid_arguments"
	Timeout            Failure = "timeout"
	Cancelled          Failure = "cancelled"
	InputNeeded        Failure = "input_needed"
	SandboxUnavailable Failure = "sandbox_unavailable"
	ProtectedPath      Failure = "protected_path"
	Internal           Failure = "internal_error"
)

// Result is how an Invocation ended.
type Result struct {
	// Text is the answer or, for a tool with live output, the lines before the output.
	Text    string
	IsError bool    // the call did not do what was asked
	Failure Failure // something other than the command decided the end
	Diff    string
	File    *File  // of a single file
	Files   []File // of several files

	// The rest is set by tools that start processes.
	Exit      *Exit
	Terminal  string
	Order     string             // of the lines in Combined: "exact", as written, or "arrival"
	Sandbox   *sandbox.Report    // what was enforced; set by every tool
	Leftovers []executor.Process // killed at the end

	// Denials are what the sandbox denied. Text lists them already.
	Denials []sandbox.Denial
}

// Calls are the calls that an Invocation may inspect and stop, for concurrent use.
type Calls interface {
	// Find returns a call by its tool_call_id, or nil.
	Find(ctx context.Context, id string) (OtherCall, error)
	// List returns the calls that are not answered, the oldest first; with ended, the latest answered
	// ones that ran a command come before them.
	List(ctx context.Context, ended bool) ([]CallStatus, error)
}

// An OtherCall is one call among Calls.
type OtherCall interface {
	Status() CallStatus
	// Changed returns a channel that is closed at the next output or change of status; nil after the
	// end. Call it before reading.
	Changed() <-chan struct{}
	// ReadAt returns up to most bytes of a stream at offset or, if those are dropped, the oldest
	// later ones. from is the offset of the first.
	ReadAt(s Stream, offset int64, most int) (p []byte, from int64)
	// Stop stops the call. The channel is closed at its end.
	Stop(reason string) (ended <-chan struct{})
}

// CallStatus is the state of a call.
type CallStatus struct {
	ID         string
	Background bool
	State      string // "received", "waiting", "queued", "running" or "ended"
	What       string // the first line of what it does; "" if ended
	Started    time.Time
	Bytes      [3]int64 // by Stream
	End        string   // how it ended: "exit code 0"; "" until then
}

// File is what a call did to one file.
type File struct {
	Path         string // canonical
	Operation    string // "read", "create", "write", "edit", "remove" or "move"
	From         string // of a moved file
	Bytes        int64  // of the returned content, or of the file after a change
	Lines        int64  // of the same
	Replacements int64
	TotalLines   *int64 // of a file that was read; nil = unknown
	NextOffset   int64  // first line not returned; 0 = none
}

// Exit is how the command of a call ended.
type Exit struct {
	Code   int    // 128+n if signal n ended it
	Signal string // "SIGTERM"; empty when it exited
}
