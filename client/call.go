package client

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toold/toold/message"
)

// Call is one tool call.
type Call struct {
	ID        string // names the call for ever; empty: a new one
	Tool      string
	Arguments any // encoded as JSON; a json.RawMessage is sent as it is

	OTID, AgentID, ConversationID, RunID, StepID string // optional
}

// Events are called one after the other while a call goes on, by Call itself;
// any may be nil. A slow one slows the whole connection, and one that waits for
// another answer of the same Client may wait for ever.
type Events struct {
	Decision func(message.PolicyDecision)
	Queued   func(message.ToolQueued)
	Contact  func(message.ConnectionDecision) // the running call may contact a host, or not
	Started  func(message.ToolStarted)
	Waiting  func(message.WaitingForInput) // a program of the call waits for input, or goes on
	// Output is given the bytes of d, decoded. They are contiguous by d.Offset
	// unless d.Gap tells what was lost.
	Output func(d message.OutputDelta, data []byte)
}

// Call makes a call and returns its one return, whatever came of it: a denial
// or a failed command is no error here. An error means that no return came:
// a *message.Error when the daemon refused the frame, ErrClosed when the
// connection ended, or the cause of ctx. The end of ctx ends the waiting, not
// the call; use Cancel for that.
func (c *Client) Call(ctx context.Context, call Call, events Events) (message.ToolReturn, error) {
	arguments, err := json.Marshal(call.Arguments)
	if err != nil {
		return message.ToolReturn{}, fmt.Errorf("cannot encode the arguments of %s: %v", call.Tool, err)
	}
	if call.ID == "" {
		call.ID = message.NewID("call")
	}
	w := c.wait(func(f *frame) bool { return f.CallID == call.ID && f.RequestID == "" })
	defer c.leave(w)
	err = c.send(fields{
		"message_type": "approval_request_message", "otid": call.OTID, "agent_id": call.AgentID,
		"conversation_id": call.ConversationID, "run_id": call.RunID, "step_id": call.StepID,
		"tool_call": fields{"tool_call_id": call.ID, "tool_name": call.Tool, "arguments": json.RawMessage(arguments)},
	})
	if err != nil {
		return message.ToolReturn{}, err
	}
	for {
		f, err := c.next(ctx, w)
		if err != nil {
			return message.ToolReturn{}, fmt.Errorf("no return of call %s: %w", call.ID, err)
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

// endsCall tells an error that stands for the return from one about something
// else that was asked of the call, such as a late cancel.
func endsCall(err error) bool {
	var e *message.Error
	if !errors.As(err, &e) {
		return true
	}
	return e.Type == message.DuplicateToolCall || e.Type == message.NotAuthorized || e.Type == message.InternalError
}

func (e Events) handle(f *frame) error {
	switch {
	case f.Type == "policy_decision" && e.Decision != nil:
		return handle(f, e.Decision)
	case f.Type == "connection_decision" && e.Contact != nil:
		return handle(f, e.Contact)
	case f.Type == "tool_queued" && e.Queued != nil:
		return handle(f, e.Queued)
	case f.Type == "tool_started" && e.Started != nil:
		return handle(f, e.Started)
	case f.Type == "waiting_for_input" && e.Waiting != nil:
		return handle(f, e.Waiting)
	case f.output != nil && e.Output != nil:
		e.Output(f.output.delta, f.output.data)
	case f.Type == "tool_output_delta" && f.output == nil && e.Output != nil:
		var d message.OutputDelta
		if err := f.decode(&d); err != nil {
			return err
		}
		data, err := bytesOf(d.Data, d.DataB64)
		if err != nil {
			return err
		}
		e.Output(d, data)
	}
	return nil
}

func handle[T any](f *frame, take func(T)) error {
	var v T
	if err := f.decode(&v); err != nil {
		return err
	}
	take(v)
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

// Cancel asks to stop a call; an empty id means all calls of this client. It does
// not wait: the call answers with its return.
func (c *Client) Cancel(callID, reason string) error {
	f := fields{"message_type": "cancel", "tool_call_id": callID, "reason": reason}
	if callID == "" {
		f["all"] = true
	}
	return c.send(f)
}

// Input sends input to a running call. It does not wait for its effect; the
// RequestID of in is not sent.
func (c *Client) Input(in message.ToolInput) error { return c.send(inputFields(in)) }

// Feed sends input to a running call and waits until the command has taken it:
// who sends much loses nothing so. The RequestID of in is replaced. The error is
// a *message.Error when the call ends before.
func (c *Client) Feed(ctx context.Context, in message.ToolInput) error {
	_, err := request[message.InputTaken](ctx, c, inputFields(in))
	return err
}

func inputFields(in message.ToolInput) fields {
	f := fields{"message_type": "tool_input", "tool_call_id": in.CallID, "signal": in.Signal}
	if in.Leader {
		f["to"] = "leader"
	}
	if len(in.Data) > 0 {
		f["data_b64"] = base64.StdEncoding.EncodeToString(in.Data)
	}
	if in.EOF {
		f["eof"] = true
	}
	if in.Resize != nil {
		f["resize"] = in.Resize
	}
	return f
}
