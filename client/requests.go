package client

import (
	"context"

	"github.com/toold/toold/message"
)

// request sends a question under a new request id, stored in *id, and decodes the answer.
func request[T any](ctx context.Context, c *Client, question any, id *string) (T, error) {
	var answer T
	nonce := message.NewID("request")
	*id = nonce
	f, err := c.ask(ctx, c.wait(func(f *frame) bool { return f.RequestID == nonce }), question)
	if err != nil {
		return answer, err
	}
	return answer, f.decode(&answer)
}

// ListMessages returns a page of the journal. Limit 0 is the daemon's default.
func (c *Client) ListMessages(ctx context.Context, q message.ListMessages) (message.Messages, error) {
	q.MessageType = "list_messages"
	return request[message.Messages](ctx, c, &q, &q.RequestID)
}

// GetOutput returns recorded output of a call, and its decoded bytes.
func (c *Client) GetOutput(ctx context.Context, q message.GetOutput) (message.Output, []byte, error) {
	q.MessageType = "get_output"
	answer, err := request[message.Output](ctx, c, &q, &q.RequestID)
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

// ExplainPolicy returns how a call would be decided.
func (c *Client) ExplainPolicy(ctx context.Context, call Call) (message.PolicyExplanation, error) {
	question := struct {
		MessageType string   `json:"message_type"`
		RequestID   string   `json:"request_id"`
		Call        wireCall `json:"call"`
	}{MessageType: "explain_policy", Call: call.wire()}
	return request[message.PolicyExplanation](ctx, c, &question, &question.RequestID)
}

// Ping waits for the daemon's answer.
func (c *Client) Ping(ctx context.Context) error {
	ping := newPing()
	_, err := c.ask(ctx, c.wait(func(f *frame) bool { return pongs(f, ping) }), ping)
	return err
}

func newPing() message.Ping { return message.Ping{MessageType: "ping", Nonce: message.NewID("")} }

func pongs(f *frame, p message.Ping) bool { return f.Type == "pong" && f.Nonce == p.Nonce }
