// Package tools defines tools: how a call becomes an Invocation, which is decided on, shown and executed as the same
// value. It does not depend on the wire, dialects or policy rules.
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
	// Definition must always return the same value.
	Definition() Definition
	// Build parses the arguments strictly (see argument.Decode) and resolves every path. It has no effects. A fault of
	// the caller is an *argument.Error.
	Build(args json.RawMessage) (Invocation, error)
}

// Simple is a Tool whose arguments are decoded to an A.
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

// An Invocation is one parsed call. It does not read the text of the call again.
type Invocation interface {
	// Effects lists everything that the call can do. It is never empty: a call that cannot be analysed is Opaque.
	Effects() []policy.Effect
	// Text describes the call to a person. It must always return the same value.
	Text() string
	// Traits must always return the same value.
	Traits() Traits
	// Execute runs the call once. It returns when all its processes have ended. It stops when ctx ends;
	// context.Cause(ctx) says why.
	Execute(ctx context.Context, io IO) Result
}

// A Located is a Tool whose calls may name a directory or files.
type Located interface {
	Tool
	// Location returns the paths as written, possibly relative; none if the arguments are invalid. runs means that a
	// command runs there.
	Location(args json.RawMessage) (paths []string, runs bool)
}

// Traits determine how an Invocation is run and recorded.
type Traits struct {
	Background bool // continues after the return, as a separate call
	Input      bool // may be sent input while it runs
	// ReadOnly: the call changes nothing, prints nothing and starts no process. It may run before it is journaled,
	// provided nothing is sent to the client first.
	ReadOnly bool
	// Elsewhere: another program executes the call, without toold's sandbox.
	Elsewhere bool
}

// A Preparing is an Invocation that can prepare before it is certain to run. Its Execute calls IO.Starting itself.
type Preparing interface {
	Invocation
	// Prepare starts what Execute needs, until ctx ends. Nothing of the call runs. It may use only Profile, Limit,
	// Escalation, Approved, Opened and Policy of io, which Execute gets unchanged. The caller then calls Execute or
	// Drop.
	Prepare(ctx context.Context, io IO)
	// Drop releases what Prepare started. After Execute it has no effect.
	Drop()
}

// A Previewed is an Invocation that can show approvers more than its Text.
type Previewed interface {
	Invocation
	// Preview returns what the call would do now, as far as it is known when ctx ends. Execute does exactly that or
	// nothing.
	Preview(ctx context.Context) Preview
}

// A Confined is an Invocation in a sandbox that a person may widen.
type Confined interface {
	Invocation
	// EscalationLimits returns the part of the limits that is useful for this call.
	EscalationLimits(escalation.Limits) escalation.Limits
}

// Definition describes a tool to a model.
type Definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // JSON Schema with canonical names only
	Hidden      bool            `json:"-"`          // only other parts of toold call it
}

// Preview shows a call to an approver.
type Preview struct {
	Text string `json:"text"`           // the command or a sentence
	Diff string `json:"diff,omitempty"` // unified diff of a change
}

// Stream is an output stream of a call.
type Stream int

// The streams. Combined has both in order of arrival.
const (
	Stdout Stream = iota
	Stderr
	Combined
)

// String returns the name on the wire.
func (s Stream) String() string {
	return [...]string{"stdout", "stderr", "combined"}[s]
}

// IO connects a running Invocation to its caller. The zero value discards output and provides no input.
type IO struct {
	// Output receives live output. It is not called concurrently, and must not block or retain p.
	Output func(s Stream, p []byte)
	// Starting is called before the call may have effects, with the identity of the process that will run it, and
	// again if that changes. After an error nothing may run. It may be nil.
	Starting func(identity string) error
	// Started is called at most once, when a process of the call runs.
	Started func(Started)
	// Waiting is called when a program begins or stops waiting for input. It must not block.
	Waiting func(Waiting)
	// Input delivers input from the caller. If it is nil or closed, there is no more.
	Input <-chan Input
	// Connect decides whether the call may contact a host (name or address) at one of the ports; nil allows it. It may
	// wait for approval until ctx ends, and is called concurrently. If Connect itself is nil, no host may be
	// contacted.
	Connect func(ctx context.Context, host string, ports []uint16) error
	// Revoked waits until a host that Connect allowed may no longer be contacted at a port, and returns why. It
	// returns nil if ctx ends first.
	Revoked func(ctx context.Context, host string, port uint16) error
	// Judge decides on an effect that becomes known while the call runs, such as a file in a search. It is called
	// concurrently. If it is nil, nothing is allowed.
	Judge func(policy.Effect) policy.Decision
	// Calls has the other calls of the conversation. It may be nil.
	Calls Calls
	// Loopback has the servers of background calls that this call may reach; nil: none. If Lends, the id of this call,
	// is set, its own servers are added.
	Loopback *launch.Loopback
	Lends    string
	// Profile is the sandbox that the policy requires; "" for the configured one. It only tightens.
	Profile string
	// Limit is the client's restriction of the sandbox.
	Limit sandbox.Limit
	// Escalation is what a person added to the sandbox of this call. It may be nil. Only a Confined uses it. The
	// caller closes it.
	Escalation *escalation.Escalation
	// Approved are the canonical paths that a person has approved for writing. An Invocation that does exactly what
	// was shown may write them although they are protected.
	Approved []string
	// Policy has the rules that mask files; nil: no masks. Opened are approved effects, whose files are not masked.
	Policy *policy.Policy
	Opened []policy.Effect
}

// Started reports that a process of the call runs.
type Started struct {
	PID      int    // of the helper, in the daemon's pid namespace
	Terminal string // "split", "single" or "off"
	Sandbox  sandbox.Report
}

// Types of package executor.
type (
	Waiting = executor.Waiting
	Input   = executor.Input
)

// Failure is the error_type of a call that did not complete; "" if it did, with any exit code.
type Failure string

// Failures of an Invocation. Refusals are in package dispatch.
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
	// Text is the answer or, for a tool with live output, lines that precede the output.
	Text    string
	IsError bool    // the call did not do what was requested
	Failure Failure // why something other than the command ended the call
	Diff    string
	File    *File  // for one file
	Files   []File // for several files

	// Tools that start processes set the other fields.
	Exit      *Exit
	Terminal  string
	Order     string             // of lines in Combined: "exact", as written, or "arrival"
	Sandbox   *sandbox.Report    // the enforced sandbox; set by every tool
	Leftovers []executor.Process // processes killed at the end

	// Denials are accesses that the sandbox denied. Text already lists them.
	Denials []sandbox.Denial
}

// Calls are the calls that an Invocation may inspect and stop. It is safe for concurrent use.
type Calls interface {
	// Find returns the call with a tool_call_id, or nil.
	Find(ctx context.Context, id string) (OtherCall, error)
	// List returns the unanswered calls, oldest first. With ended, the latest answered calls that ran a command
	// precede them.
	List(ctx context.Context, ended bool) ([]CallStatus, error)
}

// An OtherCall is a call returned by Calls.
type OtherCall interface {
	Status() CallStatus
	// Changed returns a channel that is closed at the next output or change of status, or nil after the end. Call it
	// before reading.
	Changed() <-chan struct{}
	// ReadAt returns up to most bytes of a stream from offset or, if that is dropped, from the oldest later byte; from
	// is where p begins.
	ReadAt(s Stream, offset int64, most int) (p []byte, from int64)
	// Stop stops the call. The returned channel is closed at the call's end.
	Stop(reason string) (ended <-chan struct{})
}

// CallStatus is the state of a call.
type CallStatus struct {
	ID         string
	Background bool
	State      string // "received", "waiting", "queued", "running" or "ended"
	What       string // first line of its text; "" if ended
	Started    time.Time
	Bytes      [3]int64 // size of each Stream
	End        string   // how it ended, such as "exit code 0"; "" before
}

// File is what a call did with one file.
type File struct {
	Path         string // canonical path
	Operation    string // "read", "create", "write", "edit", "remove" or "move"
	From         string // old path of a moved file
	Bytes        int64  // size of the returned content, or of the changed file
	Lines        int64  // number of lines, likewise
	Replacements int64
	TotalLines   *int64 // of a file that was read; nil if unknown
	NextOffset   int64  // first line that was not returned; 0 if none
}

// Exit is how the command of a call ended.
type Exit struct {
	Code   int    // 128+n if signal n ended it
	Signal string // such as "SIGTERM"; "" if it exited
}
