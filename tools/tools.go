// Package tools defines what a tool is: how a call becomes an Invocation that is judged,
// shown and run as the same value. It decodes arguments strictly and resolves aliases.
//
// It knows no wire, dialect or rule of a policy. A caller may rely on an Invocation never
// reading the text of the call again.
package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/toold/toold/executor"
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

// An Invocation is one parsed call. Effects, Text and Execute all
// work from that parse; the text is not read again.
type Invocation interface {
	// Effects lists everything the call can do. Never empty: an unknown call is Opaque.
	Effects() []policy.Effect
	// Text says what the call does, to a person. It is constant.
	Text() string
	// Traits says what the caller has to know before Execute. They are constant.
	Traits() Traits
	// Execute runs the call once and returns when nothing of it is left
	// running. It obeys ctx; context.Cause(ctx) is why it was stopped.
	Execute(ctx context.Context, io IO) Result
}

// A Located is a Tool whose calls may name the directory or the file that they are about.
type Located interface {
	Tool
	// Location returns that path as the call names it, which may be relative; "" when it
	// names none, or cannot be understood. runs reports that a command runs there.
	Location(args json.RawMessage) (path string, runs bool)
}

// Traits of an Invocation decide how it is run and recorded.
type Traits struct {
	Background bool // it runs on after the call's return, as a call of its own
	// ReadOnly: it changes nothing, prints nothing and starts no process. It may run
	// before it is journaled, provided nothing is sent to the client first.
	ReadOnly bool
	// Elsewhere: it only decides about a call that another program carries out, where
	// toold confines nothing.
	Elsewhere bool
}

// A Preparing is an Invocation that can do part of its work before it is certain to run. Its
// Execute calls IO.Starting.
type Preparing interface {
	Invocation
	// Prepare starts what Execute needs and does not wait; nothing of the call runs. Of
	// io it may use Profile, Widen, Granted, Policy and Opened, which are the same as
	// Execute's. The caller then calls Execute or Drop.
	Prepare(io IO)
	// Drop releases what Prepare started. After Execute it does nothing.
	Drop()
}

// A Previewed is an Invocation that shows approvers more than its Text.
type Previewed interface {
	Invocation
	// Preview renders what the call would do now, as far as it can before ctx ends.
	// Execute does that or nothing.
	Preview(ctx context.Context) Preview
}

// A Confined is an Invocation in a sandbox that a person may widen for it.
type Confined interface {
	Invocation
	// Widens narrows what may be added to the sandbox of any call to what has a meaning
	// for this one.
	Widens(widen.Bounds) widen.Bounds
}

// Definition describes a tool to a model.
type Definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // JSON Schema of the arguments, canonical names only
	Hidden      bool            `json:"-"`          // no model is offered it: other parts of toold call it
}

// Preview is a call shown to a person.
type Preview struct {
	Text string `json:"text"`           // the whole command, or a sentence that says what the call does
	Diff string `json:"diff,omitempty"` // unified diff, for calls that change a file
}

// Stream names one of the two output streams of a call.
type Stream int

// The streams. Combined, both in the order in which they came, is for reading only.
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

// IO connects a running Invocation to its caller. The zero value discards all output
// and has no input.
type IO struct {
	// Output takes live output. It never blocks; calls are serialised by the
	// implementation. p is not retained.
	Output func(s Stream, p []byte)
	// Starting is called by a Preparing before anything of the call may have an effect, with
	// the identity of the process that waits to run it; again when another one has to be
	// made. An error means that nothing may run. Nil allows it.
	Starting func(identity string) error
	// Started is called at most once, when a process of the call runs.
	Started func(Started)
	// Waiting is called when a program of the call begins to wait for input and
	// when it goes on. It must not block.
	Waiting func(Waiting)
	// Input delivers what the caller sends to the running call. Nil, or closed,
	// when there is nothing more. An Invocation that takes no input ignores it.
	Input <-chan Input
	// Connect decides whether a process of the call may contact a host, a name or an
	// address, at one of the ports; nil allows it. It may wait for a person and ends
	// with ctx. It may be called from several goroutines while Execute runs. Nil
	// refuses all.
	Connect func(ctx context.Context, host string, ports []uint16) error
	// Revoked waits until a host that Connect has let through must not be contacted at
	// the port any more, and returns why; nil when ctx ends first.
	Revoked func(ctx context.Context, host string, port uint16) error
	// Judge decides an effect that is known only while the call runs, such as the read
	// of a file that a search finds. Only what it allows may happen. Nil allows nothing. It may be called from several goroutines while Execute runs.
	Judge func(policy.Effect) policy.Decision
	// Calls are the other calls of the same client, agent and conversation. Nil: there
	// are none.
	Calls Calls
	// Loopback has the servers of background calls that this call may reach; nil = none.
	// If Lends, the id of this call, is set, its own servers are added to them.
	Loopback *sandbox.Loopback
	Lends    string
	// Profile names the sandbox that the policy demands for this call; "" = the
	// configured one. It only tightens. An Invocation that starts no process ignores it.
	Profile string
	// Limit is the most that the client lets this call do.
	Limit sandbox.Limit
	// Widen is what a person has added to the sandbox of this call; nil = nothing. An
	// Invocation that is not Confined ignores it. It stays the caller's.
	Widen *widen.Grant
	// Granted are the canonical paths of files that the call asked to write and a person
	// approved. An Invocation that does exactly what was shown may write them although
	// they are protected.
	Granted []string
	// Policy is the one in force for this call: the sandbox masks the files that its
	// rules keep from programs. Nil masks nothing. Opened are the effects that a person
	// approved; they are not masked.
	Policy *policy.Policy
	Opened []policy.Effect
}

// Started reports that a process of the call runs.
type Started struct {
	PID      int    // of the sandbox's helper in the daemon's pid namespace
	Terminal string // "split", "single" or "off"
	Sandbox  sandbox.Report
}

// Waiting, Input and Process mean for a call what they mean for its command.
type (
	Waiting = executor.Waiting
	Input   = executor.Input
	Process = executor.Process
)

// Failure classifies a call that did not run to its end. The zero value means that it
// did (a non-zero exit code is not a failure of the call). The
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
	// Text is what the model reads: the whole answer, or, of a tool with live output, the
	// lines before the output (exit code, leftovers, notices).
	Text    string
	IsError bool    // the call did not do what was asked
	Failure Failure // set when something other than the command decided the end
	Diff    string  // unified diff of the change
	File    *File   // what a tool that works on one file did
	Files   []File  // what a tool that works on several files did to each

	// The rest is set by tools that start processes.
	Exit      *Exit
	Terminal  string
	Order     string          // of the lines of both streams in Combined: "exact", as they were written, or "arrival"
	Sandbox   *sandbox.Report // set by every tool: what was enforced while it ran
	Leftovers []Process       // outlived the command and were killed

	// Denials are what the sandbox denied the call. Text lists them already.
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
	// Changed returns a channel that is closed at the next output or change of status;
	// nil for a call that has ended. Call it before looking, so as to miss nothing.
	Changed() <-chan struct{}
	// ReadAt returns up to most bytes of a stream at offset or, if those are not kept,
	// the oldest later ones. from is the offset of the first.
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
