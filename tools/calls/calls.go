// Package calls provides bash_output, bash_kill and list_calls, by which a model manages the other calls of its
// conversation.
package calls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/argument"
)

// New returns the three tools. They are safe for concurrent use.
func New() []tools.Tool {
	return []tools.Tool{
		tools.Simple[outputArguments]{About: outputDefinition(), New: outputArguments.build},
		tools.Simple[killArguments]{About: killDefinition(), New: killArguments.build},
		tools.Simple[listArguments]{About: listDefinition(), New: listArguments.build},
	}
}

type invocation struct {
	name  string
	id    string // of the other call; may be ""
	text  string
	reads bool
	run   func(ctx context.Context, io tools.IO) (tools.Result, error)
}

// Effects lists the tool itself. It needs no allow rule, because it affects only calls that were allowed.
func (v invocation) Effects() []policy.Effect {
	argv := []policy.Word{{Text: v.name}}
	if v.id != "" {
		argv = append(argv, policy.Word{Text: v.id})
	}
	return []policy.Effect{{Kind: policy.Exec, Argv: argv, Possible: true, Source: v.name}}
}

func (v invocation) Text() string { return display.Visible(v.text) }

func (v invocation) Traits() tools.Traits { return tools.Traits{ReadOnly: v.reads} }

func (v invocation) Execute(ctx context.Context, io tools.IO) tools.Result {
	if io.Calls == nil {
		io.Calls = none{}
	}
	r, err := v.run(ctx, io)
	var fault *argument.Error
	switch {
	case err == nil:
	case ctx.Err() != nil:
		r = tools.Result{IsError: true, Failure: tools.Cancelled, Text: err.Error()}
	case errors.As(err, &fault):
		r = tools.Result{IsError: true, Failure: tools.InvalidArguments, Text: fault.Problem}
	default:
		r = tools.Result{IsError: true, Failure: tools.Internal, Text: err.Error()}
	}
	r.Sandbox = &sandbox.Report{Profile: "none", Enforced: []string{}, Tier: "none"}
	return r
}

type none struct{}

func (none) Find(context.Context, string) (tools.OtherCall, error)  { return nil, nil }
func (none) List(context.Context, bool) ([]tools.CallStatus, error) { return nil, nil }

func find(ctx context.Context, io tools.IO, id string) (tools.OtherCall, error) {
	call, err := io.Calls.Find(ctx, id)
	if err == nil && call == nil {
		err = fault("call_id", "no call of this conversation has the id %q; list_calls {\"all\": true} lists them", id)
	}
	return call, err
}

func fault(field, format string, args ...any) error {
	return &argument.Error{Field: field, Problem: fmt.Sprintf(format, args...)}
}

func describe(s tools.CallStatus) string {
	text := s.ID + " " + s.State
	if s.End != "" {
		text = fmt.Sprintf("%s ended (%s)", s.ID, s.End)
	} else if !s.Started.IsZero() {
		text += fmt.Sprintf(" for %s", time.Since(s.Started).Round(time.Second))
	}
	if s.Background {
		text += ", in the background"
	}
	text += fmt.Sprintf(", %d bytes of output", s.Bytes[tools.Combined])
	if s.What != "" {
		text += ": " + display.Line(s.What)
	}
	return text
}

type killArguments struct {
	CallID string `json:"call_id" alias:"shell_id,bash_id,task_id" required:"true"`
	argument.Ignored
}

func killDefinition() tools.Definition {
	return tools.Definition{
		Name:        "bash_kill",
		Description: "Stops a running call of this conversation, with all its processes (TERM, then KILL), and returns how it ended.",
		Parameters:  argument.Schema(`"call_id"`, `"call_id":{"type":"string","description":"The id of the call, as bash or list_calls returned it."}`),
	}
}

func (a killArguments) build() (tools.Invocation, error) {
	return invocation{name: "bash_kill", id: a.CallID, text: "Stop the call " + a.CallID, run: a.run}, nil
}

func (a killArguments) run(ctx context.Context, io tools.IO) (tools.Result, error) {
	call, err := find(ctx, io, a.CallID)
	if err != nil {
		return tools.Result{}, err
	}
	if s := call.Status(); s.End != "" {
		return tools.Result{Text: fmt.Sprintf("%s had ended already: %s.", s.ID, s.End)}, nil
	}
	select {
	case <-call.Stop("bash_kill was called"):
	case <-ctx.Done():
		return tools.Result{}, fmt.Errorf("%s is being stopped but has not ended yet: %w", a.CallID, ctx.Err())
	}
	return tools.Result{Text: fmt.Sprintf("%s was stopped: %s.", a.CallID, call.Status().End)}, nil
}

type listArguments struct {
	All bool `json:"all"`
	argument.Ignored
}

func listDefinition() tools.Definition {
	return tools.Definition{
		Name:        "list_calls",
		Description: "Lists the running calls of this conversation, with background servers; with all, also the latest commands that have ended.",
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"all":{"type":"boolean","description":"Also list the latest commands that have ended."}},` +
			`"additionalProperties":false}`),
	}
}

func (a listArguments) build() (tools.Invocation, error) {
	return invocation{name: "list_calls", text: "List the calls of this conversation", reads: true, run: a.run}, nil
}

func (a listArguments) run(ctx context.Context, io tools.IO) (tools.Result, error) {
	list, err := io.Calls.List(ctx, a.All)
	if err != nil {
		return tools.Result{}, err
	}
	if len(list) == 0 {
		return tools.Result{Text: "No other call of this conversation runs."}, nil
	}
	lines := make([]string, len(list))
	for i, s := range list {
		lines[i] = describe(s)
	}
	return tools.Result{Text: strings.Join(lines, "\n")}, nil
}
