package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
)

// TestAQueryOverHTTPIsCheckedAsAFrameIs: a filter that is misspelt must not select
// everything.
func TestAQueryOverHTTPIsCheckedAsAFrameIs(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Allow, hello)
	token := map[string]string{"Authorization": "bearer " + agentSecret} // any case will do
	for query, want := range map[string]int{
		"?status=error&limit=2&order=asc&message_types=a,b": http.StatusOK,
		"?status=fine":         http.StatusBadRequest,
		"?limit=1e1":           http.StatusBadRequest,
		"?limit=":              http.StatusBadRequest,
		"?run_id=a&run_id=b":   http.StatusBadRequest,
		"?tool_call_id=%00":    http.StatusBadRequest,
		"?message_type=cancel": http.StatusBadRequest,
		"?runid=a":             http.StatusBadRequest,
		"?group=g":             http.StatusBadRequest,
		"?group_id=g":          http.StatusOK,
		"?sender_id=u":         http.StatusOK,
		"?workspace=/src/app":  http.StatusOK,
		"?workspace=app":       http.StatusBadRequest,
	} {
		if res := get(t, ts.URL+"/v1/messages"+query, token); res.StatusCode != want {
			t.Errorf("GET /v1/messages%s: %s, want %d", query, res.Status, want)
		}
	}
}

// TestTheRecordShowsWhatWasAsked, and not only what was answered.
func TestTheRecordShowsWhatWasAsked(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Allow, hello)
	conn := dialAs(t, ts, agentSecret)
	made(t, conn, "call_1")
	write(t, conn, `{"message_type":"list_messages","request_id":"q1","order":"asc"}`)
	page, _ := until(t, conn, `"messages"`)
	var got struct {
		Messages []struct {
			Type string `json:"message_type"`
			Call struct {
				ID   string `json:"tool_call_id"`
				Name string `json:"tool_name"`
			} `json:"tool_call"`
			Result string `json:"result"`
		}
	}
	if err := json.Unmarshal([]byte(page), &got); err != nil || len(got.Messages) != 2 {
		t.Fatalf("%v: %s", err, page)
	}
	asked, answered := got.Messages[0], got.Messages[1]
	if asked.Type != "approval_request_message" || asked.Call.ID != "call_1" || asked.Call.Name != "shout" || strings.Contains(page, `"tool_call_id":""`) {
		t.Errorf("what was asked is listed as %+v in %s", asked, page)
	}
	if answered.Type != "tool_return_message" || answered.Result == "" {
		t.Errorf("what was answered is listed as %+v", answered)
	}
}

// TestAFilterThatIsNotKnownSelectsNothing, and one that is known selects what it names.
func TestAFilterThatIsNotKnownSelectsNothing(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Allow, hello)
	conn := dialAs(t, ts, agentSecret)
	for _, of := range []string{"1", "2"} {
		write(t, conn, `{"message_type":"approval_request_message","group_id":"group-`+of+`","sender_id":"user-`+of+`","tool_call":{"tool_call_id":"call_`+of+`","tool_name":"shout","arguments":{"text":"x"}}}`)
		until(t, conn, "tool_return_message")
	}
	for filter, want := range map[string]int{
		`"group_id":"group-1"`: 2, `"sender_id":"user-2"`: 2, `"group_id":"group-1","sender_id":"user-2"`: 0, `"limit":9`: 4,
		`"workspace":"/nowhere"`: 4, `"workspace":"/nowhere","group_id":"group-1"`: 2, `"workspace":"/src"`: 0,
	} {
		write(t, conn, `{"message_type":"list_messages","request_id":"q1",`+filter+`}`)
		page, _ := until(t, conn, `"messages"`)
		var got message.Messages
		if err := json.Unmarshal([]byte(page), &got); err != nil || len(got.Messages) != want {
			t.Errorf("%s selects %d messages, want %d (%v)", filter, len(got.Messages), want, err)
		}
	}
	for filter, want := range map[string]string{
		`"runid":"a"`: "did you mean run_id?", `"Group_ID":"a"`: "did you mean group_id?", `"sender":"a"`: "its fields are", `"frobnicate":1`: "group_id",
		`"run_id":null,"x":null`: "x is no field", `"messagetypes":[]`: "did you mean message_types?",
		`"workspace":"app"`: "workspace must be the absolute path of one",
	} {
		write(t, conn, `{"message_type":"list_messages","request_id":"q2",`+filter+`}`)
		refused, _ := until(t, conn, "error_message")
		if !strings.Contains(refused, want) || !strings.Contains(refused, `"q2"`) || !strings.Contains(refused, "invalid_arguments") {
			t.Errorf("%s: %s", filter, refused)
		}
	}
}

// TestAnswersOfPeopleAreRecordedInTheirOrder: who answered what, why, and whether anybody
// had read the question.
func TestAnswersOfPeopleAreRecordedInTheirOrder(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Ask, hello)
	person := dialAs(t, ts, approverSecret)
	agents := map[string]*websocket.Conn{}
	pinged(t, person)
	for _, id := range []string{"call_1", "call_2", "call_3"} {
		agents[id] = dialAs(t, ts, agentSecret)
		write(t, agents[id], call(id))
		until(t, person, `"approval_request_message"`)
	}
	write(
		t, person,
		`{"message_type":"approval_response_message","approvals":[{"tool_call_id":"call_3","approve":true,"reason":"go on"},{"tool_call_id":"call_1","approve":false,"reason":"not on Friday"}]}`,
		`{"message_type":"approval_response_message","beforehand":true,"approvals":[{"tool_call_id":"call_2","approve":true}]}`,
	)
	for _, agent := range agents {
		until(t, agent, `"tool_return_message"`)
	}
	agent := agents["call_1"]
	write(t, agent, `{"message_type":"list_messages","request_id":"q1","order":"asc","message_types":["approval_response_message"]}`)
	page, _ := until(t, agent, `"messages"`)
	type answer struct {
		Approvals           []message.ApprovalAnswer
		Approve, Beforehand bool
		ApprovalID          string `json:"approval_request_id"`
		Reason, Approver    string
	}
	var got struct{ Messages []answer }
	if err := json.Unmarshal([]byte(page), &got); err != nil || len(got.Messages) != 3 {
		t.Fatalf("%v: %s", err, page)
	}
	for i, want := range []answer{
		{Approve: true, Reason: "go on", Approvals: []message.ApprovalAnswer{{CallID: "call_3"}}},
		{Reason: "not on Friday", Approvals: []message.ApprovalAnswer{{CallID: "call_1"}}},
		{Approve: true, Beforehand: true, Approvals: []message.ApprovalAnswer{{CallID: "call_2"}}},
	} {
		is := got.Messages[i]
		if is.Approver != "approver" || is.Approve != want.Approve || is.Reason != want.Reason || is.Beforehand != want.Beforehand ||
			len(is.Approvals) != 1 || is.Approvals[0].CallID != want.Approvals[0].CallID || is.Approvals[0].Approve != want.Approve || is.ApprovalID == "" {
			t.Errorf("answer %d is %+v, want %+v", i+1, is, want)
		}
	}
	write(t, agent, `{"message_type":"list_messages","request_id":"q2","tool_call_id":"call_2","message_types":["tool_return_message"]}`)
	if page, _ := until(t, agent, `"q2"`); !strings.Contains(page, `"by":"beforehand"`) || !strings.Contains(page, `"person":"approver"`) {
		t.Errorf("an answer given beforehand is told as %s", page)
	}
}

// A page has all but what cannot be read, and says what that is.
func TestAPageSaysWhatIsLost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	record := must.Get(journal.Open(t.Context(), dir, journal.Self()))(t)
	defer record.Close()
	for _, text := range []string{"one", "two", "three"} {
		must.Get(record.Append(journal.Message{Client: "agent", Origin: message.Origin{AgentID: "a"}, Type: "note", Direction: journal.In, Body: []byte(`{"text":"` + text + `"}`)}))(t)
	}
	part := filepath.Join(dir, "journal", "00000001.log")
	log := must.Get(os.ReadFile(part))(t)
	log[bytes.Index(log, []byte(`"two"`))] ^= 1
	must.Do(t, os.WriteFile(part, log, 0o600))
	ts := newLimitedServer(t, policy.Allow, hello, func(*dispatch.Limits, *Options) {}, func(o *Options) { o.Journal = record })
	token := map[string]string{"Authorization": "Bearer " + agentSecret}
	for query, want := range map[string]string{"": "three one", "?order=asc": "one three", "?limit=1": "three"} {
		var page message.Messages
		must.Do(t, json.NewDecoder(get(t, ts.URL+"/v1/messages"+query, token).Body).Decode(&page))
		var texts []string
		for _, m := range page.Messages {
			var note struct{ Text string }
			must.Do(t, json.Unmarshal(m, &note))
			texts = append(texts, note.Text)
		}
		if got := strings.Join(texts, " "); got != want || query != "?limit=1" && !strings.Contains(page.Lost, "of 00000001.log") {
			t.Errorf("%q lists %q, and lost is %q", query, got, page.Lost)
		}
	}
	if res := get(t, ts.URL+"/v1/agents/a/messages", token); res.StatusCode != http.StatusInternalServerError {
		t.Errorf("a list that cannot say it: %s", res.Status)
	}
}
