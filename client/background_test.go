package client

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/message"
)

// TestNoEndOfABackgroundCallIsMissed: one may come before anybody has asked.
func TestNoEndOfABackgroundCallIsMissed(t *testing.T) {
	end := `{"message_type":"background_ended","id":"message-%d","tool_call_id":"background-%[1]d","outcome":"success"}`
	c := dial(t, func(d *daemon) {
		d.send(end, 1)
		ping := d.receiveType("ping")
		d.send(`{"message_type":"pong","nonce":"%s"}`, ping["nonce"])
		d.receiveType("cancel")
		d.send(end, 2)
		d.receive()
	})
	if err := c.Ping(t.Context()); err != nil { // the first end has come
		t.Fatal(err)
	}
	enough := errors.New("both are told")
	ctx, stop := context.WithCancelCause(t.Context())
	var got []string
	err := c.BackgroundEnds(ctx, func(e message.BackgroundEnded) {
		got = append(got, e.CallID)
		switch len(got) {
		case 1:
			if err := c.Cancel("background-2", ""); err != nil {
				t.Error(err)
			}
		case 2:
			stop(enough)
		}
	})
	if diff := cmp.Diff([]string{"background-1", "background-2"}, got); diff != "" || !errors.Is(err, enough) {
		t.Errorf("%v, ends (-want +got):\n%s", err, diff)
	}
}
