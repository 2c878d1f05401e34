package client

import (
	"context"
	"errors"
	"testing"

	"github.com/toold/toold/message"
)

func TestFedInputWaitsUntilItIsTaken(t *testing.T) {
	c := dial(t, func(d *daemon) {
		f := d.receiveType("tool_input")
		if f["data_b64"] != "b25l" || f["tool_call_id"] != "c1" {
			d.t.Errorf("got %v", f)
		}
		d.send(`{"message_type":"input_taken","request_id":%q,"tool_call_id":"c1"}`, f["request_id"])
		f = d.receiveType("tool_input")
		d.send(`{"message_type":"error_message","error_type":"not_running","message":"ended","request_id":%q}`, f["request_id"])
	})
	if err := c.Feed(t.Context(), message.ToolInput{CallID: "c1", Data: []byte("one")}); err != nil {
		t.Error(err)
	}
	err := c.Feed(t.Context(), message.ToolInput{CallID: "c1", Data: []byte("two")})
	var e *message.Error
	if !errors.As(err, &e) || e.Type != message.NotRunning {
		t.Errorf("got %v", err)
	}
}

func TestASignalToTheLeaderAndWaitsTravel(t *testing.T) {
	c := dial(t, func(d *daemon) {
		d.receiveType("approval_request_message")
		d.send(`{"message_type":"waiting_for_input","tool_call_id":"c1","waiting":true,"kind":"line","pid":3,"command":"cat"}`)
		if f := d.receiveType("tool_input"); f["to"] != "leader" || f["signal"] != "INT" {
			d.t.Errorf("got %v", f)
		}
		d.send(`{"message_type":"tool_return_message","tool_call_id":"c1","status":"success"}`)
	})
	var waits []message.WaitingForInput
	_, err := c.Call(context.Background(), Call{ID: "c1", Tool: "bash"}, Events{Waiting: func(w message.WaitingForInput) {
		waits = append(waits, w)
		if err := c.Input(message.ToolInput{CallID: "c1", Signal: "INT", Leader: true}); err != nil {
			t.Error(err)
		}
	}})
	if err != nil || len(waits) != 1 || waits[0].Kind != "line" || waits[0].PID != 3 {
		t.Errorf("got %v, %v", waits, err)
	}
}
