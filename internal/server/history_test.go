package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
)

// TestTheHistoryHasTheShapesOfLetta: its fields and no others, with nulls.
func TestTheHistoryHasTheShapesOfLetta(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Allow, hello)
	conn := dialAs(t, ts, agentSecret)
	for i := range 3 {
		write(t, conn, fmt.Sprintf(`{"message_type":"approval_request_message","agent_id":"agent-1","conversation_id":"conv-1","run_id":"run-1","otid":"o","tool_call":{"tool_call_id":"call_%d","tool_name":"shout","arguments":{"text": "x"}}}`, i))
		until(t, conn, "tool_return_message")
	}
	made(t, conn, "other")

	list := func(path string, want int) []map[string]any {
		t.Helper()
		res := get(t, ts.URL+path, map[string]string{"Authorization": "Bearer " + agentSecret})
		body, err := io.ReadAll(res.Body)
		var all []map[string]any
		if err != nil || res.StatusCode != want || want == http.StatusOK && json.Unmarshal(body, &all) != nil {
			t.Fatalf("GET %s: %s %s %v", path, res.Status, body, err)
		}
		return all
	}
	ids := func(all []map[string]any) (ids []any) {
		for _, m := range all {
			ids = append(ids, m["id"])
		}
		return ids
	}
	run := list("/v1/runs/run-1/messages", http.StatusOK)
	if len(run) != 6 {
		t.Fatalf("%d messages: %v", len(run), run)
	}
	asked, answered := run[0], run[1]
	one := map[string]any{"name": "shout", "arguments": `{"text":"x"}`, "tool_call_id": "call_0"}
	want := map[string]any{
		"message_type": "approval_request_message", "id": asked["id"], "date": asked["date"], "otid": "o", "run_id": "run-1", "seq_id": asked["seq_id"],
		"name": nil, "sender_id": nil, "step_id": nil, "is_err": nil, "tool_call": one, "tool_calls": []any{one},
	}
	must.Match(t, want, asked)
	want = map[string]any{
		"message_type": "tool_return_message", "id": answered["id"], "date": answered["date"], "otid": answered["otid"], "run_id": "run-1", "seq_id": answered["seq_id"],
		"name": "shout", "sender_id": nil, "step_id": nil, "is_err": nil, "tool_call_id": "call_0", "status": "success", "tool_return": "hello\n",
		"stdout": []any{"hello\n"}, "stderr": []any{}, "tool_returns": []any{map[string]any{
			"type": "tool", "tool_call_id": "call_0", "status": "success", "tool_return": "hello\n", "stdout": []any{"hello\n"}, "stderr": []any{},
		}},
	}
	must.Match(t, want, answered)
	for _, m := range run {
		if !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`).MatchString(m["date"].(string)) {
			t.Errorf("date %v", m["date"])
		}
	}

	agent := list("/v1/agents/agent-1/messages?include_err=true", http.StatusOK)
	if len(agent) != 6 || agent[0]["id"] != run[5]["id"] {
		t.Errorf("newest first: %v", ids(agent))
	}
	var walked []any
	for before := ""; ; {
		page := list("/v1/conversations/conv-1/messages?limit=4&before="+before, http.StatusOK)
		if len(page) == 0 {
			break
		}
		walked = append(walked, ids(page)...)
		before = page[len(page)-1]["id"].(string)
	}
	must.Match(t, ids(agent), walked)
	id := run[2]["id"].(string)
	if got := list("/v1/runs/run-1/messages?order=desc&after="+id+"&include_return_message_types=tool_return_message", http.StatusOK); len(got) != 2 || got[0]["id"] != run[5]["id"] {
		t.Errorf("%v", ids(got))
	}
	if got := list("/v1/agents/nobody/messages", http.StatusOK); len(got) != 0 {
		t.Errorf("%v", got)
	}
	list("/v1/agents/agent-1/messages?before=message-none", http.StatusNotFound)
	list("/v1/agents/agent-1/messages?limit=0", http.StatusUnprocessableEntity)
	list("/v1/agents/agent-1/messages?run=1", http.StatusUnprocessableEntity)
}
