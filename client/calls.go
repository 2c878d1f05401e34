package client

import (
	"context"

	"github.com/toold/toold/message"
)

// ListCalls returns the calls that are not answered: those of this client or, for a
// token with another role than agent, of all clients. If ended, it adds the latest
// that are answered.
func (c *Client) ListCalls(ctx context.Context, ended bool) ([]message.CallInfo, error) {
	q := message.ListCalls{MessageType: "list_calls", All: ended}
	answer, err := request[struct{ Calls []message.CallInfo }](ctx, c, &q, &q.RequestID)
	return answer.Calls, err
}

// Stop asks to stop a call and returns when the daemon has the request; the call
// ends later. The error is a *message.Error of the type not_running if there is
// nothing to stop.
func (c *Client) Stop(ctx context.Context, callID, reason string) error {
	ping := newPing()
	w := c.wait(func(f *frame) bool { return pongs(f, ping) || f.Type == "error_message" && f.CallID == callID })
	if err := c.Cancel(callID, reason); err != nil {
		c.leave(w)
		return err
	}
	_, err := c.ask(ctx, w, ping) // answered after the cancel
	return err
}

const backgroundEnded = "background_ended"

// BackgroundEnds calls ended for each background call of this client that ends. It
// returns when ctx or the connection ends, with the cause. The daemon reports an end
// once, so the Client keeps up to 256 that came before.
func (c *Client) BackgroundEnds(ctx context.Context, ended func(message.BackgroundEnded)) error {
	w := c.wait(func(f *frame) bool { return f.Type == backgroundEnded })
	defer c.leave(w)
	c.mu.Lock()
	early := c.ends
	c.ends = nil
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
