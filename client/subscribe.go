package client

import (
	"context"

	"github.com/toold/toold/message"
)

// SubscriptionEvents are called sequentially by Subscribe; any may be nil. Slow ones cause gaps.
type SubscriptionEvents struct {
	Subscribed func(after int64) // journal number before the first event
	Event      func(message.SubscriptionEvent)
	Gap        func(message.SubscriptionGap)
}

// Subscribe reports the selected events of all clients' calls until ctx or the connection ends; it
// returns the cause. A connection has one subscription. It needs the role observer, approver or
// admin.
func (c *Client) Subscribe(ctx context.Context, s message.Subscribe, events SubscriptionEvents) error {
	id := message.NewID("request")
	w := c.wait(func(f *frame) bool { return f.RequestID == id })
	defer c.leave(w)
	s.MessageType, s.RequestID = "subscribe", id
	if err := c.send(s); err != nil {
		return err
	}
	for {
		f, err := c.next(ctx, w)
		if err != nil {
			if ctx.Err() != nil {
				_ = c.send(message.Unsubscribe{MessageType: "unsubscribe"}) // only if closed
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
