package server

import (
	"context"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

// An agent can compute the id of the question about a call of its own. A call that has it as
// its tool_call_id gets no answer that was meant for the other.
func TestAnAnswerToAQuestionReachesNoCallThatIsNamedAfterIt(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Ask, hello)
	approver, agent := dialAs(t, ts, approverSecret), dialAs(t, ts, agentSecret)
	pinged(t, approver)
	question := func(id string) string {
		write(t, agent, call(id))
		return questionID(t, approver)
	}
	yes := func(id string) {
		write(t, approver, `{"message_type":"approval_response_message","approval_request_id":"`+id+`","approve":true}`)
	}
	shown := question("call_1")
	stealing := question(shown)
	yes(shown)
	if resolved, before := until(t, approver, `"approval_resolved"`); !strings.Contains(resolved, `"tool_call_id":"call_1"`) || len(before) > 0 {
		t.Errorf("the yes to call_1 is that to %s after %q", resolved, before)
	}
	until(t, agent, `"tool_return_message"`)
	yes(shown) // once more, when nothing waits under it but the other call
	if refusal, before := until(t, approver, `"error_message"`); !strings.Contains(refusal, `"approval_not_pending"`) || len(before) > 0 {
		t.Errorf("the second yes: %s after %q", refusal, before)
	}
	yes(stealing)
	if resolved, _ := until(t, approver, `"approval_resolved"`); !strings.Contains(resolved, `"tool_call_id":"`+shown+`"`) {
		t.Errorf("its own answer: %s", resolved)
	}
}

// Several may decide at once: whose answer counts is said to them alone, under the request_id of the answer.
func TestWhoDecidesHearsWhetherTheirAnswerCounts(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Ask, hello)
	first, second, agent := dialAs(t, ts, approverSecret), dialAs(t, ts, approverSecret), dialAs(t, ts, agentSecret)
	pinged(t, first)
	pinged(t, second)
	write(t, agent, call("call_1"))
	shown := questionID(t, first)
	answer := func(conn *websocket.Conn, rest string) {
		write(t, conn, `{"message_type":"approval_response_message",`+rest+`}`)
	}
	answer(first, `"request_id":"q1","approve":true,"arguments":{"bad":1},"approval_request_id":"`+shown+`"`)
	if e, _ := until(t, first, `"error_message"`); !strings.Contains(e, `"invalid_arguments"`) || !strings.Contains(e, `"request_id":"q1"`) {
		t.Errorf("an answer that cannot count got %s", e)
	}
	answer(first, `"request_id":"q2","approve":true,"approval_request_id":"`+shown+`"`)
	if resolved, before := until(t, first, `"approval_resolved"`); !strings.Contains(resolved, `"request_id":"q2"`) || len(before) > 0 {
		t.Errorf("the answer that counts got %s after %q", resolved, before)
	}
	if resolved, _ := until(t, second, `"approval_resolved"`); strings.Contains(resolved, "request_id") {
		t.Errorf("who had not answered got %s", resolved)
	}
	answer(second, `"request_id":"q2","approvals":[{"type":"approval","tool_call_id":"call_1","approve":true}]`)
	if e, _ := until(t, second, `"error_message"`); !strings.Contains(e, `"approval_not_pending"`) || !strings.Contains(e, `"request_id":"q2"`) {
		t.Errorf("the answer that came too late got %s", e)
	}
}

// A yes that comes late was meant for the call of which its sender knew.
func TestAnAnswerByTheIDOfACallReachesNoLaterCallWithThatID(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Ask, hello)
	approver, agent := dialAs(t, ts, approverSecret), dialAs(t, ts, agentSecret)
	pinged(t, approver)
	write(t, agent, strings.Replace(call("call_1"), "{", `{"agent_id":"a",`, 1))
	until(t, approver, `"approval_request_message"`)
	write(t, agent, `{"message_type":"cancel","tool_call_id":"call_1"}`)
	until(t, agent, `"tool_return_message"`)
	until(t, approver, `"approval_resolved"`)
	write(t, agent, strings.Replace(call("call_1"), "{", `{"agent_id":"b",`, 1))
	own := questionID(t, approver)
	for _, late := range []string{
		`"approvals":[{"type":"approval","tool_call_id":"call_1","approve":true}]`,
		`"approval_request_id":"call_1","approve":true`,
	} {
		write(t, approver, `{"message_type":"approval_response_message",`+late+`}`)
		if e, before := until(t, approver, `"error_message"`); !strings.Contains(e, `approval_request_id`) || len(before) > 0 {
			t.Errorf("%s: got %s after %q", late, e, before)
		}
	}
	write(t, approver, `{"message_type":"approval_response_message","approval_request_id":"`+own+`","approve":true}`)
	until(t, approver, `"approval_resolved"`)
	if ret, _ := until(t, agent, `"tool_return_message"`); !strings.Contains(ret, "hello") {
		t.Errorf("got %s", ret)
	}
}

// The id of a call names the question whether it runs, and none that its programs cause.
func TestAnAnswerByTheIDOfACallReachesNoQuestionAboutAHost(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Ask, func(ctx context.Context, io tools.IO) tools.Result {
		if err := io.Connect(ctx, "host.example", []uint16{443}); err != nil {
			return tools.Result{Text: "no connection: " + err.Error()}
		}
		return tools.Result{Text: "connected"}
	})
	approver, agent := dialAs(t, ts, approverSecret), dialAs(t, ts, agentSecret)
	pinged(t, approver)
	write(t, agent, call("call_1"))
	until(t, approver, `"approval_request_message"`)
	yes := `{"message_type":"approval_response_message","approvals":[{"type":"approval","tool_call_id":"call_1","approve":true}]}`
	write(t, approver, yes)
	until(t, approver, `"approval_resolved"`)
	own := questionID(t, approver)
	write(t, approver, yes)
	if e, before := until(t, approver, `"error_message"`); !strings.Contains(e, `"approval_not_pending"`) || len(before) > 0 {
		t.Errorf("got %s after %q", e, before)
	}
	write(t, approver, `{"message_type":"approval_response_message","approval_request_id":"`+own+`","approve":false}`)
	if ret, _ := until(t, agent, `"tool_return_message"`); !strings.Contains(ret, "no connection") {
		t.Errorf("got %s", ret)
	}
}

// Agents may choose the same id: who cancels it as a person stops all that have it, and input
// for one of them goes to no other.
func TestAPersonWhoNamesAnIDReachesEachCallThatHasIt(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Allow, untilCancelled)
	person := dialAs(t, ts, approverSecret)
	var agents []*websocket.Conn
	for _, name := range []string{"a", "b"} {
		agent := dialAs(t, ts, agentSecret)
		agents = append(agents, agent)
		write(t, agent, strings.Replace(call("call_1"), "{", `{"agent_id":"`+name+`",`, 1))
		until(t, agent, `"tool_started"`)
	}
	write(t, person, `{"message_type":"tool_input","tool_call_id":"call_1","data":"x"}`)
	if e, _ := until(t, person, `"error_message"`); !strings.Contains(e, `"invalid_arguments"`) {
		t.Errorf("the input got %s", e)
	}
	write(t, person, `{"message_type":"cancel","tool_call_id":"call_1"}`)
	for _, agent := range agents {
		if ret, _ := until(t, agent, `"tool_return_message"`); !strings.Contains(ret, `"error_type":"cancelled"`) {
			t.Errorf("got %s", ret)
		}
	}
}
