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
		in, errs := (&message.Decoder{}).Decode([]byte(d.receive()))
		answer, _ := json.Marshal(in)
		if want := `[{"Answers":[{"approval_request_id":"approval-1","approve":true,"reason":"fine"}],"Remember":"","Beforehand":false}]`; string(answer) != want || len(errs) > 0 {
			d.t.Errorf("got %s, %v, want %s", answer, errs, want)
		}
		d.send(`{"message_type":"approval_resolved","id":"approval-0","tool_call_id":"c0","approve":true}`)
		d.send(`{"message_type":"approval_resolved","id":"approval-1","tool_call_id":"c1","approve":true}`)
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

func TestADecisionThatCameTooLateIsAnError(t *testing.T) {
	t.Parallel()
	c := dial(t, func(d *daemon) {
		d.receiveType("approval_response_message")
		d.send(`{"message_type":"approval_resolved","id":"approval-1","tool_call_id":"c1","approve":false,"by":"somebody faster"}`)
		d.send(`{"message_type":"error_message","error_type":"approval_not_pending","message":"m"}`)
	})
	_, err := c.Decide(t.Context(), Decision{CallID: "c1", Approve: true})
	var refused *message.Error
	if !errors.As(err, &refused) || refused.Type != message.ApprovalNotPending {
		t.Errorf("got %v, want approval_not_pending", err)
	}
}

// A yes of another that widens less, or more, is not this one.
func TestAnAnswerThatWidensIsNotTakenForAnother(t *testing.T) {
	t.Parallel()
	for name, theirs := range map[string]string{"nothing": "", "more": `,"widened":{"network":"full"}`} {
		c := dial(t, func(d *daemon) {
			in, errs := (&message.Decoder{}).Decode([]byte(d.receive()))
			answer, _ := json.Marshal(in)
			if want := `[{"Answers":[{"tool_call_id":"c1","approve":true,"widen":{"network":"proxy"}}],"Remember":"","Beforehand":false}]`; string(answer) != want || len(errs) > 0 {
				d.t.Errorf("got %s, %v, want %s", answer, errs, want)
			}
			d.send(`{"message_type":"approval_resolved","id":"approval-1","tool_call_id":"c1","approve":true%s}`, theirs)
			d.send(`{"message_type":"error_message","error_type":"approval_not_pending","message":"too late","tool_call_id":"c1"}`)
		})
		_, err := c.Decide(t.Context(), Decision{CallID: "c1", Approve: true, Widen: message.Widening{Network: "proxy"}})
		var refused *message.Error
		if !errors.As(err, &refused) || refused.Type != message.ApprovalNotPending {
			t.Errorf("%s: got %v", name, err)
		}
		c.Close()
	}
}
