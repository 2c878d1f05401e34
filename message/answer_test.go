package message_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
)

func TestItemsAreAnsweredInTheFormsOfTheirDialects(t *testing.T) {
	t.Parallel()
	const (
		shell = `{"type":"shell_call","call_id":"c","action":{"commands":["a"]}}`
		short = `{"type":"shell_call","call_id":"c","action":{"commands":["a","b","d"],"max_output_length":2}}`
		local = `{"type":"local_shell_call","call_id":"c","action":{"command":["a"]}}`
		patch = `{"type":"apply_patch_call","call_id":"c","operation":{}}`
		block = `{"type":"tool_use","id":"c","name":"bash","input":{}}`
	)
	fine := message.ToolReturn{CallID: "c", Status: "success", Result: "out", Stdout: []string{"öut"}, Stderr: []string{"err"}, StdoutBytes: 4, DurationMS: 1500, ExitCode: new(0)}
	denied := message.ToolReturn{CallID: "c", Result: "Error: denied", ErrorType: new(message.Denied)}
	for _, row := range []struct {
		frame   string
		returns []message.ToolReturn
		want    string
	}{
		{shell, []message.ToolReturn{fine}, `{"type":"shell_call_output","call_id":"c","status":"completed","output":[{"stdout":"öut","stderr":"err","outcome":{"type":"exit","exit_code":0}}]}`},
		{shell, []message.ToolReturn{{CallID: "c", ExitCode: new(3)}}, shellResult("", `"exit","exit_code":3`)},
		{shell, []message.ToolReturn{{CallID: "c", Status: "success"}}, shellResult("", `"exit","exit_code":0`)},
		{shell, []message.ToolReturn{{CallID: "c", Status: "success", ExitCode: new(0), Note: "changed", Stderr: []string{"err"}}}, shellResult(`changed\nerr`, `"exit","exit_code":0`)},
		{shell, []message.ToolReturn{denied}, shellResult("Error: denied", `"exit","exit_code":126`)},
		{shell, []message.ToolReturn{{CallID: "c", Result: "gone", ErrorType: new(message.Shutdown)}}, shellResult("gone", `"exit","exit_code":125`)},
		{shell, []message.ToolReturn{{CallID: "c", Result: "late", TimedOut: true}}, shellResult("late", `"timeout"`)},
		{shell, []message.ToolReturn{{CallID: "c", Result: "late", TimedOut: true, StderrBytes: 1, Stderr: []string{"e"}}}, shellResult("e", `"timeout"`)},
		{short, []message.ToolReturn{fine, denied}, `{"type":"shell_call_output","call_id":"c","status":"completed","max_output_length":2,"output":[` +
			`{"stdout":"öu","stderr":"er","outcome":{"type":"exit","exit_code":0}},{"stdout":"","stderr":"Er","outcome":{"type":"exit","exit_code":126}},` +
			`{"stdout":"","stderr":"Error: not run, since command 2 did not run to its end","outcome":{"type":"exit","exit_code":126}}]}`},
		{local, []message.ToolReturn{fine}, localResult("out", `0,\"duration_seconds\":1.5`)},
		{local, []message.ToolReturn{{CallID: "c", Result: "late", TimedOut: true}}, localResult("late", `124,\"duration_seconds\":0`)},
		{patch, []message.ToolReturn{fine}, `{"type":"apply_patch_call_output","call_id":"c","status":"completed","output":"out"}`},
		{patch, []message.ToolReturn{denied}, `{"type":"apply_patch_call_output","call_id":"c","status":"failed","output":"Error: denied"}`},
		{block, []message.ToolReturn{fine}, `{"type":"tool_result","tool_use_id":"c","content":"out","is_error":false}`},
		{block, []message.ToolReturn{denied}, `{"type":"tool_result","tool_use_id":"c","content":"Error: denied","is_error":true}`},
	} {
		for i, r := range row.returns {
			row.returns[i] = r.Complete()
		}
		got, err := message.Encode(decoded(t, row.frame).(*message.Request).Answer(row.returns...))
		if diff := cmp.Diff(row.want, string(got)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got)\n%s", row.frame, err, diff)
		}
	}
}

func shellResult(stderr, outcome string) string {
	return `{"type":"shell_call_output","call_id":"c","status":"completed","output":[{"stdout":"","stderr":"` + stderr + `","outcome":{"type":` + outcome + `}}]}`
}

func localResult(output, metadata string) string {
	return `{"type":"local_shell_call_output","id":"c","call_id":"c","status":"completed","output":"{\"output\":\"` + output + `\",\"metadata\":{\"exit_code\":` + metadata + `}}"}`
}

func decoded(t *testing.T, frame string) message.Inbound {
	t.Helper()
	in, errs := (&message.Decoder{}).Decode([]byte(frame))
	if len(in) != 1 || len(errs) > 0 {
		t.Fatalf("%s is %v, %v", frame, in, errs)
	}
	return in[0]
}

func TestAnswersRepeatTheRequestID(t *testing.T) {
	t.Parallel()
	for frame, want := range map[string]struct {
		answer func(in message.Inbound) any
		text   string
	}{
		`{"message_type":"list_approvals","request_id":"r"}`: {
			func(in message.Inbound) any { return in.(*message.ListApprovals).Answer([]message.ApprovalRequest{}) },
			`{"message_type":"approvals","request_id":"r","approvals":[]}`,
		},
		`{"message_type":"list_calls","request_id":"r"}`: {
			func(in message.Inbound) any { return in.(*message.ListCalls).Answer([]message.CallInfo{}) },
			`{"message_type":"calls","request_id":"r","calls":[]}`,
		},
		`{"message_type":"subscribe","request_id":"r"}`: {
			func(in message.Inbound) any { return in.(*message.Subscribe).Answer(7) },
			`{"message_type":"subscribed","request_id":"r","after":7}`,
		},
		`{"message_type":"unsubscribe","request_id":"r"}`: {
			func(in message.Inbound) any { return in.(*message.Unsubscribe).Answer() },
			`{"message_type":"unsubscribed","request_id":"r"}`,
		},
		`{"message_type":"tool_input","request_id":"r","tool_call_id":"c","eof":true}`: {
			func(in message.Inbound) any { return in.(*message.ToolInput).Taken() },
			`{"message_type":"input_taken","request_id":"r","tool_call_id":"c"}`,
		},
		`{"message_type":"ping","nonce":"n"}`: {
			func(in message.Inbound) any { return in.(*message.Ping).Answer() },
			`{"message_type":"pong","nonce":"n"}`,
		},
		`{"type":"ping"}`: {
			func(in message.Inbound) any { return in.(*message.Ping).Answer() },
			`{"message_type":"pong","type":"pong"}`,
		},
	} {
		got, err := message.Encode(want.answer(decoded(t, frame)))
		if diff := cmp.Diff(want.text, string(got)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got)\n%s", frame, err, diff)
		}
	}
}

func TestASubscriberGetsTheTopicsItNames(t *testing.T) {
	t.Parallel()
	for frame, want := range map[string]map[string]bool{
		`{"message_type":"subscribe"}`:                                   {"started": true, "output": false},
		`{"message_type":"subscribe","output":true}`:                     {"started": true, "output": true},
		`{"message_type":"subscribe","topics":["started"]}`:              {"started": true, "return": false, "output": false},
		`{"message_type":"subscribe","topics":["output"]}`:               {"started": false, "output": true},
		`{"message_type":"subscribe","output":true,"topics":["return"]}`: {"started": false, "return": true, "output": true},
	} {
		for topic, wanted := range want {
			if decoded(t, frame).(*message.Subscribe).Wants(topic) != wanted {
				t.Errorf("%s: it gets %s: %v", frame, topic, !wanted)
			}
		}
	}
}

func TestAnInputSurvivesTheWire(t *testing.T) {
	t.Parallel()
	for _, in := range []message.ToolInput{
		{CallID: "c", RequestID: "r", Data: []byte("y\xff\n")},
		{CallID: "c", EOF: true},
		{CallID: "c", Signal: "INT"},
		{CallID: "c", Signal: "INT", Leader: true},
		{CallID: "c", Rows: 1, Cols: 2},
	} {
		frame := must.Get(message.Encode(in))(t)
		if diff := cmp.Diff(&in, decoded(t, string(frame))); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", frame, diff)
		}
	}
}

func TestAnItemOfSeveralCommandsHasAShorterID(t *testing.T) {
	t.Parallel()
	for length, refused := range map[int]bool{254: false, 255: true, 256: true} {
		id := strings.Repeat("x", length)
		request := decoded(t, `{"type":"shell_call","call_id":"`+id+`","action":{"commands":["a","b"]}}`).(*message.Request)
		if (request.Calls[0].Invalid != "") != refused || (len(request.Calls) == 1) != refused {
			t.Errorf("%d bytes: %+v", length, request.Calls)
		}
	}
}

func TestArgumentsThatAreNoJSONAreShownAsText(t *testing.T) {
	t.Parallel()
	for arguments, want := range map[string]string{`{"a":1}`: `{"a":1}`, `{"a`: `"{\"a"`} {
		call := message.ToolCall{ID: "c", Name: "bash", Arguments: []byte(arguments)}
		got, err := message.Encode(call.Shown())
		if want := `{"tool_call_id":"c","tool_name":"bash","name":"bash","arguments":` + want + `}`; err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
}
