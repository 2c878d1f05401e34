package client

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toold/toold/message"
)

// request asks for something under a new request id and decodes the answer.
func request[T any](ctx context.Context, c *Client, question fields) (T, error) {
	var answer T
	id := message.NewID("request")
	question["request_id"] = id
	f, err := c.ask(ctx, c.wait(func(f *frame) bool { return f.RequestID == id }), question)
	if err != nil {
		return answer, err
	}
	return answer, f.decode(&answer)
}

// ListMessages returns a page of the journal. The RequestID of q is replaced;
// a Limit of 0 means the daemon's default.
func (c *Client) ListMessages(ctx context.Context, q message.ListMessages) (message.Messages, error) {
	f := fields{
		"message_type": "list_messages", "before": q.Before, "after": q.After, "run_id": q.RunID, "step_id": q.StepID,
		"agent_id": q.AgentID, "conversation_id": q.ConversationID, "tool_call_id": q.CallID, "otid": q.OTID,
		"group_id": q.GroupID, "sender_id": q.SenderID, "workspace": q.Workspace, "status": q.Status,
	}
	if q.Limit != 0 {
		f["limit"] = q.Limit
	}
	if q.Ascending {
		f["order"] = "asc"
	}
	if len(q.MessageTypes) > 0 {
		f["message_types"] = q.MessageTypes
	}
	return request[message.Messages](ctx, c, f)
}

// GetOutput returns recorded output of a call and its bytes, decoded. The
// RequestID of q is replaced.
func (c *Client) GetOutput(ctx context.Context, q message.GetOutput) (message.Output, []byte, error) {
	answer, err := request[message.Output](ctx, c, fields{
		"message_type": "get_output", "tool_call_id": q.CallID, "stream": q.Stream, "offset": q.Offset, "limit": q.Limit,
	})
	if err != nil {
		return answer, nil, err
	}
	text := ""
	if answer.Data != nil {
		text = *answer.Data
	}
	data, err := bytesOf(text, answer.DataB64)
	return answer, data, err
}

// ExplainPolicy returns how a call would be decided. Nothing runs.
func (c *Client) ExplainPolicy(ctx context.Context, call Call) (message.PolicyExplanation, error) {
	arguments, err := json.Marshal(call.Arguments)
	if err != nil {
		return message.PolicyExplanation{}, fmt.Errorf("cannot encode the arguments of %s: %v", call.Tool, err)
	}
	if call.ID == "" {
		call.ID = message.NewID("call")
	}
	return request[message.PolicyExplanation](ctx, c, fields{
		"message_type": "explain_policy",
		"call":         fields{"tool_call_id": call.ID, "tool_name": call.Tool, "arguments": json.RawMessage(arguments)},
	})
}

// Ping returns when the daemon has answered.
func (c *Client) Ping(ctx context.Context) error {
	nonce := message.NewID("")
	w := c.wait(func(f *frame) bool { return f.Type == "pong" && f.Nonce == nonce })
	_, err := c.ask(ctx, w, fields{"message_type": "ping", "nonce": nonce})
	return err
}
