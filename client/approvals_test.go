package client

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/message"
)

const question = `{"message_type":"approval_request_message","id":%q,"tool_call_id":"c1","tool_call":{"tool_call_id":"c1","arguments":{}}}`

func TestEveryWaitingApprovalIsToldOnce(t *testing.T) {
	t.Parallel()
	c := dial(t, func(d *daemon) {
		id := d.receiveType("list_approvals")["request_id"]
		d.send(question, "approval-1") // new and in the list
		d.send(`{"message_type":"approvals","request_id":%q,"approvals":[`+question+`,`+question+`]}`, id, "approval-0", "approval-1")
		d.send(question, "approval-2")
		d.send(`{"message_type":"approval_resolved","id":"approval-0","tool_call_id":"c1","approve":true}`)
	})
	var told []string
	err := c.Approvals(t.Context(), ApprovalEvents{
		Requested: func(r message.ApprovalRequest) { told = append(told, r.ID) },
		Resolved: func(r message.ApprovalResolved) {
			told = append(told, "resolved "+r.ID)
			c.Close()
		},
	})
	want := []string{"approval-0", "approval-1", "approval-2", "resolved approval-0"}
	if diff := cmp.Diff(want, told); diff != "" || !errors.Is(err, ErrClosed) {
		t.Errorf("got %v (-want +got)\n%s", err, diff)
	}
}

func TestACallbackMayDecide(t *testing.T) {
	t.Parallel()
	c := dial(t, func(d *daemon) {
		id := d.receiveType("list_approvals")["request_id"]
		d.send(`{"message_type":"approvals","request_id":%q,"approvals":[`+question+`]}`, id, "approval-1")
		answer := d.receiveAnswer()
		want := message.ApprovalAnswer{ApprovalID: "approval-1", Approve: true, Reason: "fine"}
		if diff := cmp.Diff([]message.ApprovalAnswer{want}, answer.Answers); diff != "" {
			d.t.Errorf("(-want +got)\n%s", diff)
		}
		d.send(`{"message_type":"approval_resolved","id":"approval-0","tool_call_id":"c0","approve":true}`)
		d.send(`{"message_type":"approval_resolved","id":"approval-1","tool_call_id":"c1","approve":true,"request_id":%q}`, answer.RequestID)
	})
	err := c.Approvals(t.Context(), ApprovalEvents{Requested: func(r message.ApprovalRequest) {
		got, err := c.Decide(t.Context(), Decision{ApprovalID: r.ID, Approve: true, Reason: "fine"})
		if err != nil || got.ID != "approval-1" {
			t.Errorf("got %+v, %v", got, err)
		}
		c.Close()
	}})
	if !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

// receiveAnswer returns the next frame, which decides on a call, as the daemon reads it.
func (d *daemon) receiveAnswer() message.ApprovalResponse {
	text := d.receive()
	in, errs := (&message.Decoder{}).Decode([]byte(text))
	answer, ok := in[0].(*message.ApprovalResponse)
	if len(in) != 1 || !ok || len(errs) > 0 {
		d.t.Errorf("the client sent %s: %v", text, errs)
		return message.ApprovalResponse{}
	}
	return *answer
}

// What another approver was first with is not this decision, however like it is.
func TestADecisionThatCameTooLateIsAnError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mine   Decision
		theirs string // decided first
	}{
		{Decision{CallID: "c1", Approve: true}, `"approve":false,"by":"somebody faster"`},
		{Decision{CallID: "c1", Approve: true}, `"approve":true`},
		{Decision{ApprovalID: "approval-1"}, `"approve":false,"reason":"not on Friday"`},
		{Decision{CallID: "c1", Approve: true, Arguments: json.RawMessage(`{"command":"true"}`)}, `"approve":true`},
		{Decision{ApprovalID: "approval-1", Approve: true, Remember: "rule", Pattern: "make **"}, `"approve":true`},
		{Decision{CallID: "c1", Approve: true, Widen: message.Widening{Network: "proxy"}}, `"approve":true`},
		{Decision{CallID: "c1", Approve: true, Widen: message.Widening{Network: "proxy"}}, `"approve":true,"widened":{"network":"full"}`},
		{Decision{CallID: "c1", Approve: true, Widen: message.Widening{Network: "proxy"}}, `"approve":true,"widened":{"network":"proxy"}`},
	} {
		conn := dial(t, func(d *daemon) {
			answer := d.receiveAnswer()
			one := answer.Answers[0]
			if one.Widen != c.mine.Widen || string(one.Arguments) != string(c.mine.Arguments) || answer.Remember != c.mine.Remember {
				d.t.Errorf("%+v was sent as %+v", c.mine, answer)
			}
			d.send(`{"message_type":"approval_resolved","id":"approval-1","tool_call_id":"c1",%s}`, c.theirs)
			d.send(`{"message_type":"error_message","error_type":"approval_not_pending","message":"too late","tool_call_id":"c1","request_id":%q}`, answer.RequestID)
		})
		_, err := conn.Decide(t.Context(), c.mine)
		if refused, ok := errors.AsType[*message.Error](err); !ok || refused.Type != message.ApprovalNotPending {
			t.Errorf("%+v after %s: got %v, want approval_not_pending", c.mine, c.theirs, err)
		}
		conn.Close()
	}
}
