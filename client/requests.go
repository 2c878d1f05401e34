package client

import (
	"context"

	"github.com/toold/toold/message"
)

// request sends a question with a new request id, which it stores in *id, and decodes the answer.
func request[T any](ctx context.Context, c *Client, question any, id *string) (T, error) {
	var answer T
	nonce := message.NewID("request")
	*id = nonce
	f, err := c.roundTrip(ctx, c.addWaiter(func(f *frame) bool { return f.RequestID == nonce }), question)
	if err != nil {
		return answer, err
	}
	return answer, f.decode(&answer)
}

// ListMessages returns a page of the journal. It replaces q.RequestID. Limit 0 means the daemon's default.
func (c *Client) ListMessages(ctx context.Context, q message.ListMessages) (message.Messages, error) {
	q.MessageType = "list_messages"
	return request[message.Messages](ctx, c, &q, &q.RequestID)
}

// GetOutput returns recorded output of a call and its bytes, decoded. It replaces q.RequestID.
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

// ExplainPolicy returns how the daemon would decide on a call, which does not run.
func (c *Client) ExplainPolicy(ctx context.Context, call Call) (message.PolicyExplanation, error) {
	question := struct {
		MessageType string   `json:"message_type"`
		RequestID   string   `json:"request_id"`
		Call        wireCall `json:"call"`
	}{MessageType: "explain_policy", Call: call.wire()}
	return request[message.PolicyExplanation](ctx, c, &question, &question.RequestID)
}

// Ping returns when the daemon has answered.
func (c *Client) Ping(ctx context.Context) error {
	ping := newPing()
	_, err := c.roundTrip(ctx, c.addWaiter(func(f *frame) bool { return isPong(f, ping) }), ping)
	return err
}

func newPing() message.Ping { return message.Ping{MessageType: "ping", Nonce: message.NewID("")} }

func isPong(f *frame, p message.Ping) bool { return f.Type == "pong" && f.Nonce == p.Nonce }

// ListCalls returns unanswered calls with an id ("": any); for an agent, only those of this client. With ended, the
// latest answered calls are included.
func (c *Client) ListCalls(ctx context.Context, id string, ended bool) ([]message.CallInfo, error) {
	q := message.ListCalls{MessageType: "list_calls", CallID: id, All: ended}
	answer, err := request[struct{ Calls []message.CallInfo }](ctx, c, &q, &q.RequestID)
	return answer.Calls, err
}

// Stop is Cancel, but waits until the daemon has the request. The error is a *message.Error of type not_running if
// there is nothing to stop.
func (c *Client) Stop(ctx context.Context, callID, reason string) error {
	ping := newPing()
	w := c.addWaiter(func(f *frame) bool { return isPong(f, ping) || f.Type == "error_message" && f.CallID == callID })
	if err := c.Cancel(callID, reason); err != nil {
		c.removeWaiter(w)
		return err
	}
	_, err := c.roundTrip(ctx, w, ping) // the pong follows errors of the cancel
	return err
}

const backgroundEnded = "background_ended"

// BackgroundEnds reports the end of each background call of this client, until ctx or the connection ends. It returns
// the cause. Since the daemon reports an end only once, the Client keeps up to 256 that arrived earlier.
func (c *Client) BackgroundEnds(ctx context.Context, ended func(message.BackgroundEnded)) error {
	w := c.addWaiter(func(f *frame) bool { return f.Type == backgroundEnded })
	defer c.removeWaiter(w)
	c.mu.Lock()
	early := c.unclaimedEnds
	c.unclaimedEnds = nil
	c.mu.Unlock()
	for _, f := range early {
		if err := handle(f, ended); err != nil {
			return err
		}
	}
	for {
		f, err := c.next(ctx, w)
		if err != nil {
			return err
		}
		if err := handle(f, ended); err != nil {
			return err
		}
	}
}

// SubscriptionEvents are callbacks of Subscribe, which calls them one after another; any may be nil. Slow ones cause
// gaps.
type SubscriptionEvents struct {
	Subscribed func(after int64) // number of the journal message before the first event
	Event      func(message.SubscriptionEvent)
	Gap        func(message.SubscriptionGap)
}

// Subscribe reports the selected events of all clients' calls, until ctx or the connection ends. It returns the cause.
// It replaces s.RequestID. A connection has one subscription. It needs the role observer, approver or admin.
func (c *Client) Subscribe(ctx context.Context, s message.Subscribe, events SubscriptionEvents) error {
	id := message.NewID("request")
	w := c.addWaiter(func(f *frame) bool { return f.RequestID == id })
	defer c.removeWaiter(w)
	s.MessageType, s.RequestID = "subscribe", id
	if err := c.send(s); err != nil {
		return err
	}
	for {
		f, err := c.next(ctx, w)
		if err != nil {
			if ctx.Err() != nil {
				_ = c.send(message.Unsubscribe{MessageType: "unsubscribe"}) // fails only if the connection has ended
			}
			return err
		}
		if err := events.handle(f); err != nil {
			return err
		}
	}
}

func (e SubscriptionEvents) handle(f *frame) error {
	switch {
	case f.Type == "error_message":
		return f.asError()
	case f.Type == "subscribed" && e.Subscribed != nil:
		return handle(f, func(s struct{ After int64 }) { e.Subscribed(s.After) })
	case f.Type == "subscription_event" && e.Event != nil:
		return handle(f, e.Event)
	case f.Type == "subscription_gap" && e.Gap != nil:
		return handle(f, e.Gap)
	}
	return nil
}
