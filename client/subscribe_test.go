package client

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/message"
)

func TestEventsOfASubscriptionComeInOrder(t *testing.T) {
	t.Parallel()
	enough := errors.New("all have come")
	c := dial(t, func(d *daemon) {
		asked := d.receiveType("subscribe")
		if asked["after"] != 7.0 || asked["output"] != true || asked["client"] != "agent" || asked["tool_name"] != nil {
			d.t.Errorf("asked %v", asked)
		}
		id := asked["request_id"]
		d.send(`{"message_type":"subscribed","request_id":%q,"after":7}`, id)
		d.send(`{"message_type":"subscription_event","request_id":"another","topic":"request"}`)
		d.send(`{"message_type":"subscription_event","request_id":%q,"topic":"return","seq":8,"client":"agent","event":{"a":1}}`, id)
		d.send(`{"message_type":"subscription_gap","request_id":%q,"skipped":9,"after":8}`, id)
		d.receiveType("unsubscribe")
	})
	ctx, stop := context.WithCancelCause(t.Context())
	after := int64(7)
	var got []string
	err := c.Subscribe(ctx, message.Subscribe{After: &after, Output: true, Client: "agent"}, SubscriptionEvents{
		Subscribed: func(after int64) { got = append(got, fmt.Sprint("after ", after)) },
		Event:      func(e message.SubscriptionEvent) { got = append(got, fmt.Sprintf("%d %s %s", e.Seq, e.Topic, e.Event)) },
		Gap: func(g message.SubscriptionGap) {
			got = append(got, fmt.Sprintf("%d skipped", g.Skipped))
			stop(enough)
		},
	})
	if diff := cmp.Diff([]string{"after 7", `8 return {"a":1}`, "9 skipped"}, got); diff != "" || !errors.Is(err, enough) {
		t.Errorf("got %v (-want +got)\n%s", err, diff)
	}
}

func TestARefusedSubscriptionIsAnError(t *testing.T) {
	t.Parallel()
	c := dial(t, func(d *daemon) {
		d.send(`{"message_type":"error_message","error_type":"not_authorized","request_id":%q}`, d.receiveType("subscribe")["request_id"])
		d.receive()
	})
	var refused *message.Error
	if err := c.Subscribe(t.Context(), message.Subscribe{}, SubscriptionEvents{}); !errors.As(err, &refused) || refused.Type != message.NotAuthorized {
		t.Errorf("got %v", err)
	}
}
