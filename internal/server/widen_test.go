package server

import (
	"strings"
	"testing"

	"github.com/toold/toold/policy"
)

// Who requests a call can neither approve nor widen it, and what nobody may add does
// not count.
func TestOnlyApproversWidenAndOnlyWithinBounds(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Ask, hello)
	approver, agent := dialAs(t, ts, approverSecret), dialAs(t, ts, agentSecret)
	pinged(t, approver)
	write(t, agent, call("call_1"))
	question, _ := until(t, approver, `"approval_request_message"`)
	if strings.Contains(question, "may_widen") {
		t.Errorf("something may be added: %s", question)
	}
	widened := `{"message_type":"approval_response_message","approvals":[{"tool_call_id":"call_1","approve":true,"widen":{"network":"full"}}]}`
	write(t, agent, widened)
	if refusal, _ := until(t, agent, `"error_message"`); !strings.Contains(refusal, `"not_authorized"`) {
		t.Errorf("the agent got %s", refusal)
	}
	write(t, approver, widened)
	refusal, before := until(t, approver, `"error_message"`)
	if !strings.Contains(refusal, `"invalid_arguments"`) || !strings.Contains(refusal, "the call still waits") || !strings.Contains(refusal, `"tool_call_id":"call_1"`) || len(before) > 0 {
		t.Errorf("the approver got %s after %q", refusal, before)
	}
	write(t, approver, `{"message_type":"approval_response_message","approvals":[{"tool_call_id":"call_1","approve":true}]}`)
	if resolved, _ := until(t, approver, `"approval_resolved"`); strings.Contains(resolved, "widened") {
		t.Errorf("got %s", resolved)
	}
	if ret, _ := until(t, agent, `"tool_return_message"`); !strings.Contains(ret, `"person":"approver"`) || strings.Contains(ret, "widened") {
		t.Errorf("got %s", ret)
	}
}
