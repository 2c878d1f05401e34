package client

import (
	"context"

	"github.com/toold/toold/message"
)

// SubscriptionEvents are called one after the other by Subscribe; any may be nil. A slow one
// slows the connection, and the daemon skips events then: Gap is called.
type SubscriptionEvents struct {
	Subscribed func(message.Subscribed)
	Event      func(message.SubscriptionEvent)
	Gap        func(message.SubscriptionGap)
}

// Subscribe passes on the events of everybody's calls that s selects, until ctx ends or the
// connection does; it returns why. The RequestID of s is replaced. A connection has one
// subscription at a time. The token needs the role observer, approver or admin.
func (c *Client) Subscribe(ctx context.Context, s message.Subscribe, events SubscriptionEvents) error {
	id := message.NewID("request")
	w := c.wait(func(f *frame) bool { return f.RequestID == id })
	defer c.leave(w)
	question := fields{
		"message_type": "subscribe", "request_id": id, "client": s.Client, "agent_id": s.AgentID,
		"conversation_id": s.ConversationID, "tool_name": s.ToolName, "tool_call_id": s.CallID,
	}
	if s.After != nil {
		question["after"] = *s.After
	}
	if s.Output {
		question["output"] = true
	}
	if len(s.Topics) > 0 {
		question["topics"] = s.Topics
	}
	if err := c.send(question); err != nil {
		return err
	}
	for {
		f, err := c.next(ctx, w)
		if err != nil {
			if ctx.Err() != nil {
				_ = c.send(fields{"message_type": "unsubscribe"}) // the connection has ended otherwise
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
		return handle(f, e.Subscribed)
	case f.Type == "subscription_event" && e.Event != nil:
		return handle(f, e.Event)
	case f.Type == "subscription_gap" && e.Gap != nil:
		return handle(f, e.Gap)
	}
	return nil
}
