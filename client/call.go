package client

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"github.com/toold/toold/message"
)

// Call is a tool call.
type Call struct {
	ID        string // must never be reused; "": Call generates one
	Tool      string
	Arguments any // encoded as JSON; a json.RawMessage remains unchanged

	OTID, AgentID, ConversationID, RunID, StepID string // optional
}

// Events are callbacks of Client.Call, which calls them one after another; any may be nil. A slow callback slows the
// connection. One that waits for another answer of the same Client may block forever.
type Events struct {
	Decision func(message.PolicyDecision)
	Queued   func(message.ToolQueued)
	Contact  func(message.ConnectionDecision)
	Started  func(message.ToolStarted)
	Waiting  func(message.WaitingForInput)
	// Output receives the bytes of d, decoded. They continue the stream, unless d.Gap is set.
	Output func(d message.OutputDelta, data []byte)
}

type wireCall struct {
	CallID    string `json:"tool_call_id"`
	ToolName  string `json:"tool_name"`
	Arguments any    `json:"arguments"`
}

func (c Call) wire() wireCall {
	return wireCall{cmp.Or(c.ID, message.NewID("call")), c.Tool, c.Arguments}
}

// Call makes a call and waits for its return, which may be a denial. If there is none, the error is a *message.Error,
// wraps ErrClosed, or is the cause of ctx. The end of ctx does not stop the call; Cancel does.
func (c *Client) Call(ctx context.Context, call Call, events Events) (message.ToolReturn, error) {
	wire, agent := call.wire(), call.AgentID
	if !message.IsID(agent) {
		agent = "" // the daemon refuses the call, without that
	}
	w := c.addWaiter(func(f *frame) bool {
		mine := f.AgentID == agent || f.AgentID == "" && f.Type == "error_message"
		return mine && f.CallID == wire.CallID && f.RequestID == ""
	})
	defer c.removeWaiter(w)
	err := c.send(struct {
		MessageType    string   `json:"message_type"`
		OTID           string   `json:"otid,omitempty"`
		AgentID        string   `json:"agent_id,omitempty"`
		ConversationID string   `json:"conversation_id,omitempty"`
		RunID          string   `json:"run_id,omitempty"`
		StepID         string   `json:"step_id,omitempty"`
		ToolCall       wireCall `json:"tool_call"`
	}{"approval_request_message", call.OTID, call.AgentID, call.ConversationID, call.RunID, call.StepID, wire})
	if err != nil {
		return message.ToolReturn{}, err
	}
	for {
		f, err := c.next(ctx, w)
		if err != nil {
			return message.ToolReturn{}, fmt.Errorf("no return of call %s: %w", wire.CallID, err)
		}
		switch f.Type {
		case "tool_return_message":
			if f.returned != nil {
				return *f.returned, nil
			}
			var r message.ToolReturn
			return r, f.decode(&r)
		case "error_message":
			if e := f.asError(); endsCall(e) {
				return message.ToolReturn{}, e
			}
		default:
			if err := events.handle(f); err != nil {
				return message.ToolReturn{}, err
			}
		}
	}
}

// endsCall reports whether an error is about the call itself, not about another frame, such as a late cancel.
func endsCall(err error) bool {
	e, ok := errors.AsType[*message.Error](err)
	return !ok || slices.Contains([]message.ErrorType{message.DuplicateToolCall, message.NotAuthorized, message.InternalError}, e.Type)
}

func (e Events) handle(f *frame) error {
	switch f.Type {
	case "policy_decision":
		return handle(f, e.Decision)
	case "connection_decision":
		return handle(f, e.Contact)
	case "tool_queued":
		return handle(f, e.Queued)
	case "tool_started":
		return handle(f, e.Started)
	case "waiting_for_input":
		return handle(f, e.Waiting)
	case "tool_output_delta":
		return e.handleOutput(f)
	}
	return nil
}

func (e Events) handleOutput(f *frame) error {
	if e.Output == nil {
		return nil
	}
	if f.output != nil {
		e.Output(f.output.delta, f.output.data)
		return nil
	}
	var d message.OutputDelta
	if err := f.decode(&d); err != nil {
		return err
	}
	data, err := bytesOf(d.Data, d.DataB64)
	if err != nil {
		return err
	}
	e.Output(d, data)
	return nil
}

func handle[T any](f *frame, callback func(T)) error {
	if callback == nil {
		return nil
	}
	var v T
	if err := f.decode(&v); err != nil {
		return err
	}
	callback(v)
	return nil
}

func bytesOf(data, b64 string) ([]byte, error) {
	if b64 == "" {
		return []byte(data), nil
	}
	decoded, err := base64.StdEncoding.DecodeString(b64)
	if err != nil {
		return nil, fmt.Errorf("cannot read output of the daemon: %v", err)
	}
	return decoded, nil
}

// Cancel asks the daemon to stop a call. It does not wait for the return.
func (c *Client) Cancel(callID, reason string) error {
	if callID == "" {
		return errors.New("no call is named: its id is empty")
	}
	return c.send(message.Cancel{MessageType: "cancel", CallID: callID, Reason: reason})
}

// CancelAll is Cancel for all calls of this client or, for an approver or admin, of all clients.
func (c *Client) CancelAll(reason string) error {
	return c.send(message.Cancel{MessageType: "cancel", All: true, Reason: reason})
}

// Input sends input to a running call without waiting for an answer. It ignores in.RequestID.
func (c *Client) Input(in message.ToolInput) error {
	in.RequestID = ""
	return c.send(in)
}

// Feed sends input and waits until the command has the data. It replaces in.RequestID. The error is a *message.Error
// if the call ends first.
func (c *Client) Feed(ctx context.Context, in message.ToolInput) error {
	_, err := request[struct{}](ctx, c, &in, &in.RequestID)
	return err
}
