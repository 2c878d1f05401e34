package client

import (
	"context"

	"github.com/toold/toold/message"
)

// ListCalls returns the calls that are not answered, those of this client or, for
// tokens with another role than agent, everybody's; with ended also the latest
// that are.
func (c *Client) ListCalls(ctx context.Context, ended bool) ([]message.CallInfo, error) {
	answer, err := request[message.Calls](ctx, c, fields{"message_type": "list_calls", "all": ended})
	return answer.Calls, err
}

// Stop asks to stop a call and returns when the daemon has taken it; the call
// ends a little later. A *message.Error of the type not_running says that there
// is nothing to stop.
func (c *Client) Stop(ctx context.Context, callID, reason string) error {
	nonce := message.NewID("")
	w := c.wait(func(f *frame) bool {
		return f.Type == "pong" && f.Nonce == nonce || f.Type == "error_message" && f.CallID == callID
	})
	if err := c.Cancel(callID, reason); err != nil {
		c.leave(w)
		return err
	}
	_, err := c.ask(ctx, w, fields{"message_type": "ping", "nonce": nonce}) // answered after the cancel
	return err
}

const backgroundEnded = "background_ended"

// BackgroundEnds calls ended for each background call of this client that ends, until
// ctx ends or the connection does; it returns why. The daemon tells an end once, so
// what came before is kept until somebody asks: 256 at the most.
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
