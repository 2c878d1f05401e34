package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toold/toold/policy"
)

const observerSecret = "observer-secret-observer-secret-observer"

// asking is a request of each kind that carries a request_id.
var asking = []string{
	`{"message_type":"list_messages","request_id":"q"}`,
	`{"message_type":"list_calls","request_id":"q"}`,
	`{"message_type":"list_approvals","request_id":"q"}`,
	`{"message_type":"get_output","request_id":"q","tool_call_id":"c"}`,
	`{"message_type":"explain_policy","request_id":"q","call":{"tool_call_id":"c","tool_name":"shout","arguments":{}}}`,
	`{"message_type":"tool_input","request_id":"q","tool_call_id":"c","eof":true}`,
	`{"message_type":"cancel","request_id":"q","tool_call_id":"c"}`,
}

func TestALongCommandIsExplainedAndNotRecorded(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Allow, hello)
	conn := dialAs(t, ts, agentSecret)
	for _, size := range []int{3000, 5000, 1 << 19} {
		write(t, conn, fmt.Sprintf(`{"message_type":"explain_policy","request_id":"q%d","call":{"tool_call_id":"c","tool_name":"shout","arguments":{"text":%q}}}`, size, strings.Repeat("x", size)))
		answer := read(t, conn)
		if !strings.Contains(answer, `"policy_explanation"`) || !strings.Contains(answer, fmt.Sprintf(`"request_id":"q%d"`, size)) {
			t.Errorf("%d bytes were answered by %.300s", size, answer)
		}
	}
	write(t, conn, `{"message_type":"list_messages","request_id":"all"}`)
	if list := read(t, conn); !strings.Contains(list, `"messages":[]`) {
		t.Errorf("explaining was recorded: %.300s", list)
	}
}

// TestAFaultIsAnsweredWithItsRequestID takes away what serves requests.
func TestAFaultIsAnsweredWithItsRequestID(t *testing.T) {
	t.Parallel()
	_, ts := newTestServer(t, func(o *Options) {
		o.Tokens = also(o.Tokens, Token{Name: "all", Secret: observerSecret, Roles: []Role{Observer, Admin}})
	}, func(o *Options) { o.Dispatch, o.Journal = nil, nil })
	conn := dialAs(t, ts, observerSecret)
	for _, frame := range asking {
		if strings.Contains(frame, "list_approvals") {
			continue // it needs the questions, which a connection that decides joins
		}
		write(t, conn, frame)
		if answer := read(t, conn); !strings.Contains(answer, `"internal_error"`) || !strings.Contains(answer, `"request_id":"q"`) {
			t.Errorf("%s was answered by %s", frame, answer)
		}
	}
}

func TestARefusalCarriesTheRequestID(t *testing.T) {
	t.Parallel()
	_, ts := newTestServer(t, nil)
	conn := dialAs(t, ts, agentSecret)
	many := make([]string, 300)
	for i := range many {
		many[i] = fmt.Sprintf(`"f%d":0`, i)
	}
	for name, frame := range map[string]string{
		"lacks its role":        `{"message_type":"list_approvals","request_id":"q"}`,
		"of no known type":      `{"message_type":"telepathy","request_id":"q"}`,
		"with a faulty field":   `{"message_type":"list_calls","request_id":"q","all":"yes"}`,
		"with a faulty call":    `{"message_type":"explain_policy","request_id":"q","call":{"name":"shout"}}`,
		"without a type":        `{"request_id":"q"}`,
		"with many members":     `{"message_type":"list_calls","request_id":"q",` + strings.Join(many, ",") + `}`,
		"nested too deeply":     `{"message_type":"list_calls","request_id":"q","all":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`,
		"cut short":             `{"message_type":"list_calls","request_id":"q","all":tr`,
		"with an escaped name":  `{"message_type":"telepathy","request\u005fid":"q"}`,
		"whose id comes late":   `{"message_type":"telepathy","a":{"request_id":"x"},"b":["request_id","x"],"c":"}","request_id":"q"}`,
		"that decides nothing":  `{"message_type":"approval_response_message","request_id":"q"}`,
		"that cancels nothing":  `{"message_type":"cancel","request_id":"q"}`,
		"of an unknown version": `{"message_type":"hello","request_id":"q","protocol":9}`,
	} {
		write(t, conn, frame)
		if answer := read(t, conn); !strings.Contains(answer, `"error_message"`) || !strings.Contains(answer, `"request_id":"q"`) {
			t.Errorf("a frame %s was answered by %s", name, answer)
		}
	}
}

func TestWaitingCallsShowWhoAsks(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Ask, hello)
	agent, approver := dialAs(t, ts, agentSecret), dialAs(t, ts, approverSecret)
	pinged(t, approver)
	long := strings.Repeat("é", 5000)
	write(t, agent, `{"message_type":"hello","client":{"name":"my-agent","version":"1.2"}}`,
		`{"message_type":"approval_request_message","agent_id":"agent-7","conversation_id":"conv-2","tool_call":{"tool_call_id":"c","tool_name":"shout","arguments":{"description":"publish it","justification":"`+long+`"}}}`)
	question, _ := until(t, approver, `"approval_request_message"`)
	write(t, approver, `{"message_type":"list_approvals","request_id":"q1"}`, `{"message_type":"list_calls","request_id":"q2"}`)
	waiting, _ := until(t, approver, `"q1"`)
	calls, _ := until(t, approver, `"q2"`)
	for name, frame := range map[string]string{"the question": question, "list_approvals": waiting, "list_calls": calls} {
		for _, want := range []string{
			`"client":"agent"`, `"program":{"name":"my-agent","version":"1.2"}`, `"agent_id":"agent-7"`, `"conversation_id":"conv-2"`,
			`"description":"publish it"`, `"justification":"` + strings.Repeat("é", 1000) + `…"`,
		} {
			if !strings.Contains(frame, want) {
				t.Errorf("%s lacks %.100s: %.600s", name, want, frame)
			}
		}
	}
}

func TestWhoAsksNeedSayNothing(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Ask, hello)
	agent, approver := dialAs(t, ts, agentSecret), dialAs(t, ts, approverSecret)
	pinged(t, approver)
	write(t, agent, `{"message_type":"approval_request_message","tool_call":{"tool_call_id":"c","tool_name":"shout","arguments":{"description":{"a":1}}}}`)
	question, _ := until(t, approver, `"approval_request_message"`)
	head, _, _ := strings.Cut(question, `"tool_call":`)
	if !strings.Contains(head, `"client":"agent"`) || strings.Contains(head, "program") || strings.Contains(head, "description") {
		t.Errorf("got %s", question)
	}
}
