package client

import (
	"context"

	"github.com/toold/toold/message"
)

// ListCalls returns the unanswered calls, those of this client if it is only an agent. If ended, it
// adds the latest answered ones.
func (c *Client) ListCalls(ctx context.Context, ended bool) ([]message.CallInfo, error) {
	q := message.ListCalls{MessageType: "list_calls", All: ended}
	answer, err := request[struct{ Calls []message.CallInfo }](ctx, c, &q, &q.RequestID)
	return answer.Calls, err
}

// Stop is Cancel that waits until the daemon has the request. It fails with a *message.Error,
// not_running, if there is nothing to stop.
func (c *Client) Stop(ctx context.Context, callID, reason string) error {
	ping := newPing()
	w := c.wait(func(f *frame) bool { return pongs(f, ping) || f.Type == "error_message" && f.CallID == callID })
	if err := c.Cancel(callID, reason); err != nil {
		c.leave(w)
		return err
	}
	_, err := c.ask(ctx, w, ping) // follows the cancel
	return err
}

const backgroundEnded = "background_ended"

// BackgroundEnds reports the end of each background call of this client, until ctx or the
// connection ends; it returns the cause. The daemon reports an end once: the Client keeps up to
// 256.
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
