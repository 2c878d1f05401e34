package message_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/message"
)

func TestListedMessagesHaveTheShapesOfTheFamily(t *testing.T) {
	t.Parallel()
	for record, want := range map[string]string{
		`{"id":"m","seq_id":1,"date":"2026-02-17T10:30:00.012345678Z","message_type":"approval_request_message","otid":"","run_id":"r","tool_call":{"tool_call_id":"c","name":"bash","arguments":{"command":"ls <x>"}}}`: `{"date":"2026-02-17T10:30:00.012Z","id":"m","message_type":"approval_request_message","run_id":"r","seq_id":1,` +
			`"tool_call":{"arguments":"{\"command\":\"ls <x>\"}","name":"bash","tool_call_id":"c"},"tool_calls":[{"arguments":"{\"command\":\"ls <x>\"}","name":"bash","tool_call_id":"c"}]}`,
		`{"date":"2026-02-17T10:30:00Z","tool_call":{"arguments":"{}"}}`: `{"date":"2026-02-17T10:30:00.000Z","tool_call":{"arguments":"{}"},"tool_calls":[{"arguments":"{}"}]}`,
		`{"date":"2026-02-17T10:30:00Z","reason":"","approve":true}`:     `{"approve":true,"date":"2026-02-17T10:30:00.000Z"}`,
		`{"date":"soon","tool_call":7}`:                                  `{"date":"soon","tool_call":7}`,
		`nothing`:                                                        `nothing`,
	} {
		if got := string(message.Record([]byte(record)).Listed()); got != want {
			t.Errorf("%s\nis listed as\n%s\nwant\n%s", record, got, want)
		}
	}
}

func TestMessagesOfTheHistoryHaveTheFieldsOfLettasAPI(t *testing.T) {
	t.Parallel()
	for record, want := range map[string]string{
		`{"id":"m","seq_id":1,"date":"2026-02-17T10:30:00Z","message_type":"approval_request_message","rule":"r","tool_call":{"tool_call_id":"c","tool_name":"bash","arguments":{"a":1}}}`: `{"date":"2026-02-17T10:30:00.000Z","id":"m","is_err":null,` +
			`"message_type":"approval_request_message","name":null,"otid":null,"run_id":null,"sender_id":null,"seq_id":1,"step_id":null,` +
			`"tool_call":{"name":"bash","arguments":"{\"a\":1}","tool_call_id":"c"},"tool_calls":[{"name":"bash","arguments":"{\"a\":1}","tool_call_id":"c"}]}`,
		`{"id":"m","seq_id":1,"date":"2026-02-17T10:30:00Z","message_type":"approval_response_message","approve":true,"by":"person"}`: `{"approval_request_id":null,"approvals":null,"approve":true,"date":"2026-02-17T10:30:00.000Z","id":"m","is_err":null,` +
			`"message_type":"approval_response_message","name":null,"otid":null,"reason":null,"run_id":null,"sender_id":null,"seq_id":1,"step_id":null}`,
		`{"id":"m","seq_id":1,"message_type":"connection_decision","host":"pypi.org"}`: `{"date":null,"host":"pypi.org","id":"m","is_err":null,` +
			`"message_type":"connection_decision","name":null,"otid":null,"run_id":null,"sender_id":null,"seq_id":1,"step_id":null}`,
		`nothing`: `nothing`,
	} {
		if diff := cmp.Diff(want, string(message.Record(record).History())); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", record, diff)
		}
	}
}

func TestAnInstantHasMilliseconds(t *testing.T) {
	t.Parallel()
	for want, at := range map[string]time.Time{
		"":                         {},
		"2026-02-17T10:30:00.005Z": time.Date(2026, 2, 17, 11, 30, 0, 5_999_999, time.FixedZone("", 3600)),
	} {
		if got := message.Instant(at); got != want {
			t.Errorf("%v is %q, want %q", at, got, want)
		}
	}
}

func TestARequestWhoseCallsRunIsAcceptedByWhatItIsAskedFor(t *testing.T) {
	t.Parallel()
	for frame, want := range map[string]string{
		`{"message_type":"approval_request_message","tool_call":{"tool_call_id":"c","name":"bash","arguments":{}}}`: `"tool_call_ids":["c"],"message":"not every call has ended; ask with GET /v1/calls/ID`,
		`{"type":"shell_call","call_id":"c","action":{"commands":["a","b"]}}`:                                       `"tool_call_ids":["c"],"message":"not every command has ended; send the same request again`,
	} {
		got, err := message.Encode(decoded(t, frame).(*message.Request).Accepted(nil))
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("%s: %s, %v, want %s", frame, got, err, want)
		}
	}
	var none *message.Decision
	if none.IsEdited() || (&message.Decision{}).IsEdited() || !(&message.Decision{Edited: []byte("{}")}).IsEdited() {
		t.Error("arguments of a person are confused with those of the call")
	}
}

func TestARecordedCallHasItsArgumentsAsTheyCame(t *testing.T) {
	t.Parallel()
	for arguments, want := range map[string]string{
		`{ "a" : [1, null] }`: `{"a":[1,null]}`,
		`null`:                `null`,
		``:                    `""`,
		`{"a"`:                `"{\"a\""`,
	} {
		got, err := message.ToolCall{ID: "c", Name: "bash", Arguments: []byte(arguments)}.Recorded(message.Origin{})
		want := `"tool_call":{"tool_call_id":"c","tool_name":"bash","name":"bash","arguments":` + want + `}}`
		if err != nil || !strings.HasSuffix(string(got), want) || strings.Count(string(got), `"arguments"`) != 1 {
			t.Errorf("%s is recorded as %s, %v, want %s", arguments, got, err, want)
		}
	}
}

func TestAnApprovalIsNamedByItsIDOrItsCalls(t *testing.T) {
	t.Parallel()
	request := message.ApprovalRequest{ID: "approval-1", CallID: "c", Suggestions: []message.Suggestion{{Remember: "conversation"}}}
	for id, want := range map[string]bool{"approval-1": true, "c": true, "approval-2": false, "d": false, "": false} {
		if request.Named(id) != want {
			t.Errorf("Named(%q) is %v", id, !want)
		}
	}
	if (message.ApprovalRequest{ID: "approval-1", CallID: "approval-2"}).Named("approval-2") {
		t.Error("the id of a call counts as that of an approval")
	}
	if !request.Remembers("conversation") || request.Remembers("prefix") {
		t.Error("an answer may count for longer exactly as the suggestions say")
	}
}
