// Package tools defines what a tool is: how a call becomes an Invocation that is judged, shown and
// run as the same value. It decodes arguments strictly and resolves aliases.
//
// It does not depend on the wire, dialects or policy rules. An Invocation never reads the text of
// the call again.
package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/escalation"
)

// A Tool turns the arguments of a call into an Invocation.
type Tool interface {
	// Definition describes the tool. It is constant.
	Definition() Definition
	// Build parses the arguments strictly (see Decode) and resolves every path.
	// It changes nothing. A fault of the caller is an *ArgumentError.
	Build(args json.RawMessage) (Invocation, error)
}

// An Invocation is one parsed call. Effects, Text and Execute all
// work from that parse; the text is not read again.
type Invocation interface {
	// Effects lists everything the call can do. Never empty: an unknown call is Opaque.
	Effects() []policy.Effect
	// Text says what the call does, to a person. It is constant.
	Text() string
	// Traits describe how to run the call. They are constant.
	Traits() Traits
	// Execute runs the call once and returns when none of its processes is left. It obeys ctx;
	// context.Cause(ctx) is why it was stopped.
	Execute(ctx context.Context, io IO) Result
}

// A Located is a Tool whose calls may name the directory or file that they concern.
type Located interface {
	Tool
	// Location returns that path as written in the call, possibly relative; "" if there is none, or the
	// arguments are invalid. runs reports that a command runs there.
	Location(args json.RawMessage) (path string, runs bool)
}

// Traits of an Invocation decide how it is run and recorded.
type Traits struct {
	Background bool // it goes on after the call's return, as a separate call
	// ReadOnly: it changes nothing, prints nothing and starts no process. It may run
	// before it is journaled, provided nothing is sent to the client first.
	ReadOnly bool
	// Elsewhere: it only judges a call that another program carries out, which toold does not confine.
	Elsewhere bool
}

// A Preparing is an Invocation that can do part of its work before it is certain to run. Its
// Execute calls IO.Starting.
type Preparing interface {
	Invocation
	// Prepare starts what Execute needs without blocking; nothing of the call runs. Of io it may use
	// Profile, Escalation, Approved, Policy and Opened, which are the same for Execute. The caller then
	// calls Execute or Drop.
	Prepare(io IO)
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

// A Confined is an Invocation in a sandbox that a person may widen for it.
type Confined interface {
	Invocation
	// EscalationLimits reduces the limits of all calls to what is useful for this one.
	EscalationLimits(escalation.Limits) escalation.Limits
}

// Definition describes a tool to a model.
type Definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // JSON Schema of the arguments, canonical names only
	Hidden      bool            `json:"-"`          // not offered to models: other parts of toold call it
}

// Preview is a call shown to a person.
type Preview struct {
	Text string `json:"text"`           // the whole command, or a sentence that says what the call does
	Diff string `json:"diff,omitempty"` // unified diff, for calls that change a file
}

// Stream names one of the two output streams of a call.
type Stream int

// The streams. Combined is both in order of arrival, for reading only.
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

// IO connects a running Invocation to its caller. The zero value discards all output and has no
// input.
type IO struct {
	// Output receives live output, one call at a time. It never blocks, and does not retain p.
	Output func(s Stream, p []byte)
	// Starting is called by a Preparing before anything of the call may have an effect, with the
	// identity of the process that is ready to run it, and again if another one is needed. An error
	// means that nothing may run. Nil allows it.
	Starting func(identity string) error
	// Started is called at most once, when a process of the call runs.
	Started func(Started)
	// Waiting is called when a program of the call starts or stops waiting for input. It must not
	// block.
	Waiting func(Waiting)
	// Input delivers what the caller sends to the running call. Nil, or closed, if there is nothing
	// more. An Invocation without input ignores it.
	Input <-chan Input
	// Connect decides whether a process of the call may contact a host, a name or an address, at one of
	// the ports; nil allows it. It may wait for a person and ends with ctx. It may be called
	// concurrently while Execute runs. A nil Connect refuses all.
	Connect func(ctx context.Context, host string, ports []uint16) error
	// Revoked waits until a host that Connect has allowed must not be contacted at the port any more,
	// and returns why, or nil if ctx ends first.
	Revoked func(ctx context.Context, host string, port uint16) error
	// Judge decides an effect that is known only while the call runs, such as reading a file that a
	// search finds. Only what it allows may happen. A nil Judge allows nothing. It may be called
	// concurrently while Execute runs.
	Judge func(policy.Effect) policy.Decision
	// Calls are the other calls of the same client, agent and conversation; may be nil.
	Calls Calls
	// Loopback has the servers of background calls that this call may reach; nil = none. If Lends, the
	// id of this call, is set, its own servers are added to them.
	Loopback *sandbox.Loopback
	Lends    string
	// Profile names the sandbox that the policy requires for this call; "" = the configured one. It
	// only tightens. An Invocation that starts no process ignores it.
	Profile string
	// Limit is the most that the client lets this call do.
	Limit sandbox.Limit
	// Escalation is what a person has added to the sandbox of this call; nil = nothing. An Invocation
	// that is not Confined ignores it. The caller closes it.
	Escalation *escalation.Escalation
	// Approved are the canonical paths of files that the call asked to write and a person approved. An
	// Invocation that does exactly what was shown may write them although they are protected.
	Approved []string
	// Policy is the one in force for this call: the sandbox masks the files that its rules hide from
	// programs. Nil masks nothing. Opened are the effects that a person approved; they are not masked.
	Policy *policy.Policy
	Opened []policy.Effect
}

// Started reports that a process of the call runs.
type Started struct {
	PID      int    // of the sandbox's helper in the daemon's pid namespace
	Terminal string // "split", "single" or "off"
	Sandbox  sandbox.Report
}

// Waiting, Input and Process are those of the call's command.
type (
	Waiting = executor.Waiting
	Input   = executor.Input
	Process = executor.Process
)

// Failure classifies a call that did not run to its end. The zero value means that it
// did (a non-zero exit code is not a failure of the call). The
// values are the wire's error_type.
type Failure string

// The failures an Invocation can end with. Refusals (by policy, people, limits) are in package
// dispatch.
const (
	InvalidArguments   Failure = "invalid_arguments"
	Timeout            Failure = "timeout"
	Cancelled          Failure = "cancelled" // dispatch adds the cause of ctx
	InputNeeded        Failure = "input_needed"
	SandboxUnavailable Failure = "sandbox_unavailable"
	ProtectedPath      Failure = "protected_path"
	Internal           Failure = "internal_error"
)

// Result is how an Invocation ended.
type Result struct {
	// Text is what the model reads: the whole answer, or for a tool with live output the lines before
	// the output (exit code, leftovers, notices).
	Text    string
	IsError bool    // the call did not do what was asked
	Failure Failure // set when something other than the command decided the end
	Diff    string  // unified diff of the change
	File    *File   // what a tool did to its only file
	Files   []File  // what a tool did to each of several files

	// The rest is set by tools that start processes.
	Exit      *Exit
	Terminal  string
	Order     string          // of the lines in Combined: "exact", as written, or "arrival"
	Sandbox   *sandbox.Report // set by every tool: what was enforced
	Leftovers []Process       // outlived the command and were killed

	// Denials are what the sandbox denied the call. Text lists them already.
	Denials []sandbox.Denial
}

// Calls are the calls that an Invocation may inspect and stop. Methods may be called concurrently.
type Calls interface {
	// Find returns a call by its tool_call_id; nil if there is no such call.
	Find(ctx context.Context, id string) (OtherCall, error)
	// List returns the calls that are not answered, the oldest first; with ended, the latest answered
	// ones that ran a command come before them.
	List(ctx context.Context, ended bool) ([]CallStatus, error)
}

// An OtherCall is one call among Calls.
type OtherCall interface {
	// Status returns its state.
	Status() CallStatus
	// Changed returns a channel that is closed at the next output or change of status; nil for a call
	// that has ended. Call it before reading, so as to miss nothing.
	Changed() <-chan struct{}
	// ReadAt returns up to most bytes of a stream at offset or, if those are not kept,
	// the oldest later ones. from is the offset of the first.
	ReadAt(s Stream, offset int64, most int) (p []byte, from int64)
	// Stop stops the call. The channel is closed when it has ended.
	Stop(reason string) (ended <-chan struct{})
}

// CallStatus is the state of a call.
type CallStatus struct {
	ID         string
	Background bool
	State      string // "received", "waiting", "queued", "running" or "ended"
	What       string // the first line of what it does; "" if ended
	Started    time.Time
	Bytes      [3]int64 // by Stream, Combined included
	End        string   // how it ended: "exit code 0"; "" until then
}

// File is what a call did to one file.
type File struct {
	Path         string // canonical
	Operation    string // "read", "create", "write", "edit", "remove" or "move"
	From         string // canonical path of a moved file before the move
	Bytes        int64  // size of the returned content, or of the file after a change
	Lines        int64  // the same in lines
	Replacements int64  // made by an edit
	TotalLines   *int64 // of a file that was read; nil = not known
	NextOffset   int64  // the first line that was not returned; 0 = none
}

// Exit is how the command of a call ended.
type Exit struct {
	Code   int    // 128+n when a signal ended it
	Signal string // "SIGTERM"; empty when it exited
}

// ArgumentError is a fault in the arguments of a call.
type ArgumentError struct {
	Field   string // the argument's name; empty when the whole object is at fault
	Problem string // what is wrong and what was expected, for the model
}

func (e *ArgumentError) Error() string {
	if e.Field == "" {
		return "invalid arguments: " + e.Problem
	}
	return fmt.Sprintf("invalid argument %q: %s", e.Field, e.Problem)
}
