package message

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/must"
)

func TestEncodeLeavesShellCharactersAlone(t *testing.T) {
	t.Parallel()
	got, err := Encode(map[string]string{"a": "x > y && z < w"})
	if want := `{"a":"x > y && z < w"}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if _, err := Encode(json.RawMessage("{")); err == nil {
		t.Error("a frame that is no JSON was encoded")
	}
}

func TestADeltaIsWhatEncodeWouldHaveMade(t *testing.T) {
	t.Parallel()
	for _, data := range []string{"", "plain\n", "8 bytes.", "\x1b[31mred\x1b[0m\r\n", "é—🚀\u2028 \"\\\t\x00\x7f", "a\xff\xfeb"} {
		d := OutputDelta{CallID: "c\"1", AgentID: "a\n", Stream: "stdout", Offset: 7, EventSeq: 9, Gap: &Gap{From: 1, To: 7}}
		var got OutputDelta
		if err := json.Unmarshal(d.AppendFrame(nil, []byte(data)), &got); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		d.MessageType = "tool_output_delta"
		if utf8.ValidString(data) {
			d.Data = data
		} else {
			d.DataB64 = base64.StdEncoding.EncodeToString([]byte(data))
		}
		if diff := cmp.Diff(d, got); diff != "" {
			t.Errorf("%q: (-want +got)\n%s", data, diff)
		}
	}
}

func TestLiveTextCostsLittleMoreThanItsBytes(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a line of ordinary output of some compiler, 72 characters with its end.\n", 450)
	frame := OutputDelta{CallID: "call_1", Stream: "stdout"}.AppendFrame(nil, []byte(text))
	if ratio := float64(len(frame)) / float64(len(text)); ratio > 1.2 {
		t.Errorf("%.2f bytes on the wire for a byte of output, want at most 1.2", ratio)
	}
}

func FuzzAppendDelta(f *testing.F) {
	f.Add("c1", []byte("plain\n\x1b[0m é\u2028"), int64(3))
	f.Add("c\"\\\xff", []byte("a\xff\xfeb"), int64(-1))
	f.Fuzz(func(t *testing.T, id string, data []byte, offset int64) {
		frame := OutputDelta{CallID: id, Stream: "stderr", Offset: offset}.AppendFrame([]byte("kept"), data)
		if string(frame[:4]) != "kept" || !utf8.Valid(frame) {
			t.Fatalf("not appended as UTF-8: %q", frame)
		}
		var got OutputDelta
		if err := json.Unmarshal(frame[4:], &got); err != nil {
			t.Fatalf("%q: %v", frame, err)
		}
		sent := []byte(got.Data)
		if got.DataB64 != "" {
			sent, _ = base64.StdEncoding.DecodeString(got.DataB64)
		}
		if string(sent) != string(data) || got.Offset != offset || got.CallID != strings.ToValidUTF8(id, "\ufffd") && utf8.ValidString(id) {
			t.Errorf("got %+v for %q, %q", got, id, data)
		}
	})
}

func TestAReturnTellsTheSameInEveryPlace(t *testing.T) {
	t.Parallel()
	code := 3
	r := ToolReturn{
		CallID: "c", ToolName: "Bash", ID: "message-1", OTID: "otid-1", RunID: new("run-1"), SeqID: 7,
		Date: date(time.Date(2026, 2, 17, 10, 30, 0, 5e6, time.UTC)), Status: "success", Result: "Exit code: 3\nout", Stdout: []string{"o\xff\n"},
		ExitCode: &code, DurationMS: 12, Terminal: new("split"),
	}.Complete()
	got := must.Get(Encode(r))(t)
	want := `{"message_type":"tool_return_message","id":"message-1","date":"2026-02-17T10:30:00.005Z","tool_call_id":"c",` +
		`"tool_name":"Bash","name":"Bash","status":"error","result":"Exit code: 3\nout","tool_return":"Exit code: 3\nout",` +
		`"stdout":["o` + "\ufffd" + `\n"],"stderr":[],"tool_returns":[{"type":"tool","tool_call_id":"c","status":"error",` +
		`"tool_return":"Exit code: 3\nout","stdout":["o` + "\ufffd" + `\n"],"stderr":[]}],"otid":"otid-1","run_id":"run-1",` +
		`"step_id":null,"seq_id":7,"exit_code":3,"signal":null,"timed_out":false,"cancelled":false,"duration_ms":12,` +
		`"truncated":false,"stdout_bytes":0,"stderr_bytes":0,"terminal":"split","sandbox":null,"decision":null,` +
		`"error_type":null,"diff":null}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAReturnTellsItsDenialsUpToABound(t *testing.T) {
	t.Parallel()
	many := make([]Denial, maxDenials+5)
	for i := range many {
		many[i] = Denial{Kind: "host", Op: "connect to", Target: fmt.Sprint(i), Exact: true, Setting: "s", Hint: "h"}
	}
	r := ToolReturn{CallID: "c", Denials: many}.Complete()
	if diff := cmp.Diff(many[:maxDenials], r.Denials); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	again, err := Record(recorded(t, r, 3)).Return()
	if diff := cmp.Diff(r.Denials, again.Denials); diff != "" || err != nil {
		t.Errorf("from the record (-want +got)\n%s (%v)", diff, err)
	}
}

func TestSuccessIsOnlyWhatFailedInNoWay(t *testing.T) {
	t.Parallel()
	zero, one := 0, 1
	for _, o := range []ToolReturn{
		{},
		{ExitCode: &zero},
		{Status: "success", ExitCode: &one},
		{Status: "success", Signal: new("TERM")},
		{Status: "success", TimedOut: true},
		{Status: "success", Cancelled: true},
		{Status: "success", ErrorType: new(Denied)},
	} {
		if r := o.Complete(); r.Status != "error" || r.ToolReturns[0].Status != "error" {
			t.Errorf("%+v is a success", o)
		}
	}
	if r := (ToolReturn{Status: "success", ExitCode: &zero}).Complete(); r.Status != "success" || r.ID == "" || r.OTID == "" || r.Date == "" {
		t.Errorf("got %+v, want a complete success", r)
	}
}

func TestAChatReturnTellsItsFailureInWords(t *testing.T) {
	t.Parallel()
	seven := 7
	for want, o := range map[string]ToolReturn{
		"fine":                            {Status: "success", Result: "fine"},
		"Error: exit code 7\nout":         {ExitCode: &seven, Result: "out"},
		"Error: exit code 7":              {ExitCode: &seven},
		"Error: Exit code: 7\nout":        {ExitCode: &seven, Result: "Exit code: 7\nout"},
		"Error: killed by signal TERM":    {Signal: new("TERM")},
		"Error: denied\nrule 3 denies it": {ErrorType: new(Denied), Result: "rule 3 denies it"},
		"Error: denied by rule 3":         {ErrorType: new(Denied), Result: "Error: denied by rule 3"},
		"Error: the call failed":          {},
	} {
		o.CallID, o.ToolName = "c", "bash"
		if diff := cmp.Diff(any(chatReturn{Role: "tool", CallID: "c", Name: "bash", Content: want}), chatAnswer(nil, []ToolReturn{o.Complete()})); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

func TestIDsAreUUIDsInTheOrderOfTime(t *testing.T) {
	t.Parallel()
	a := NewID("message")
	for begun := time.Now().UnixMilli(); time.Now().UnixMilli() == begun; { // in one millisecond they have no order
		runtime.Gosched()
	}
	b := NewID("message")
	if a >= b || !strings.HasPrefix(a, "message-") || len(a) != len("message-")+36 || a[8+14] != '7' || !strings.ContainsRune("89ab", rune(a[8+19])) {
		t.Errorf("got %q and %q, want two version 7 UUIDs, the later one greater", a, b)
	}
	for range 64 { // of all that is random in it
		if id := NewID(""); id[14] != '7' || !strings.ContainsRune("89ab", rune(id[19])) {
			t.Errorf("%s is no version 7 UUID", id)
		}
	}
	if id := NewID(""); len(id) != 36 || id[8] != '-' || id[13] != '-' || id[18] != '-' || id[23] != '-' {
		t.Errorf("got %q", id)
	}
}

func BenchmarkAppendDelta(b *testing.B) {
	data := []byte(strings.Repeat("a line of ordinary output of some compiler\n", 760))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	var dst []byte
	for b.Loop() {
		dst = OutputDelta{CallID: "call_1", Stream: "stdout"}.AppendFrame(dst[:0], data)
	}
}

// recorded is a return as the journal has it.
func recorded(t testing.TB, r ToolReturn, seq int64) []byte {
	t.Helper()
	record := must.Get(r.Recorder())(t)
	return record(seq)
}

func FuzzEncodeReturn(f *testing.F) {
	f.Add("c", "text <&>\n", "out\xff", "", int64(7))
	f.Add("c\"\\\xff", "", "\u2028\x00", "err", int64(-1))
	f.Add(`,"result":`, `,"seq_id":1}`, `,"tool_return":"x","stdout":[]`, `}],"seq_id":`, int64(0))
	f.Fuzz(func(t *testing.T, id, result, stdout, stderr string, seq int64) {
		r := ToolReturn{CallID: strings.ToValidUTF8(id, "?"), ToolName: "t", Status: "success", Result: result, Stdout: []string{stdout}, Stderr: []string{stderr}, SeqID: 3}.Complete()
		record := recorded(t, r, seq)
		r.SeqID = seq
		frame := must.Get(Encode(r))(t)
		if whole := Record(record).Whole(); string(whole) != string(frame) || string(Record(frame).Whole()) != string(frame) {
			t.Errorf("record %q becomes %q, want %q", record, whole, frame)
		}
		if strings.Contains(string(record), mirrorBegins) || strings.Contains(string(record), `,"tool_returns":`) {
			t.Errorf("record %q repeats fields", record)
		}
		for _, text := range [][]byte{frame, record} {
			got, err := Record(text).Return()
			if diff := cmp.Diff(r, got); err != nil || diff != "" {
				t.Errorf("%q: %v (-want +got)\n%s", text, err, diff)
			}
		}
	})
}

// A record of an earlier version has its fields in another order.
func TestARecordOfAnEarlierVersionIsRead(t *testing.T) {
	t.Parallel()
	r := ToolReturn{CallID: "c", Result: "text", Stdout: []string{"out"}}.Complete()
	r.SeqID = 7
	frame := must.Get(Encode(r))(t)
	earlier := `{"message_type":"tool_return_message","id":"` + r.ID + `","date":"` + r.Date + `","tool_call_id":"c","tool_name":"","name":"","status":"error","otid":"` + r.OTID +
		`","run_id":null,"step_id":null,"exit_code":null,"signal":null,"timed_out":false,"cancelled":false,"duration_ms":0,"truncated":false,"stdout_bytes":0,"stderr_bytes":0,` +
		`"terminal":null,"sandbox":null,"decision":null,"error_type":null,"diff":null,"tool_return":"text","stdout":["out"],"stderr":[],"seq_id":7}`
	if got := Record(earlier).Whole(); string(got) != string(frame) {
		t.Errorf("it becomes %s, want %s", got, frame)
	}
}

// A frame of somebody else is read as it is, whatever it repeats.
func FuzzDecodeReturn(f *testing.F) {
	r := ToolReturn{CallID: "c", Result: "text", Stdout: []string{"out"}}.Complete()
	frame := must.Get(Encode(r))(f)
	f.Add(frame)
	f.Add([]byte(strings.Replace(string(frame), `"result":"text"`, `"result":"other"`, 1)))
	f.Add([]byte(strings.Replace(string(frame), `"seq_id":7`, `"seq_id":7,"result":"other"`, 1)))
	f.Fuzz(func(t *testing.T, text []byte) {
		var want ToolReturn
		wantErr := json.Unmarshal(text, &want)
		got, err := Record(text).Return()
		isReturn := wantErr == nil && want.MessageType == "tool_return_message"
		if (err == nil) != isReturn {
			t.Fatalf("%q: %v, and it is a return: %t", text, err, isReturn)
		}
		if !isReturn || want.ToolReturns == nil {
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	})
}

// Servers of the family send a return without tool_returns.
func TestAReturnWithoutToolReturnsKeepsItsResult(t *testing.T) {
	t.Parallel()
	r, err := Record(`{"message_type":"tool_return_message","tool_call_id":"c","status":"success","result":"out"}`).Return()
	if err != nil || r.Result != "out" {
		t.Errorf("%+v, %v", r, err)
	}
}
