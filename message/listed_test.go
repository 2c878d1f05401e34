package message_test

import (
	"testing"

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
