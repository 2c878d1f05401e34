package message

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/toold/toold/internal/must"
)

func decodeOne(t *testing.T, d *Decoder, frame string) Inbound {
	t.Helper()
	in, errs := d.Decode([]byte(frame))
	if len(in) != 1 || len(errs) > 0 {
		t.Fatalf("%.200s: got %d messages and errors %v, want one message", frame, len(in), errs)
	}
	return in[0]
}

func wantError(t *testing.T, frame []byte, want ErrorType, text string) {
	t.Helper()
	in, errs := (&Decoder{}).Decode(frame)
	if len(in) > 0 || len(errs) != 1 || errs[0].Type != want || !strings.Contains(errs[0].Message, text) {
		t.Errorf("%.60q: got %v and %v, want one %s about %q", frame, in, errs, want, text)
	}
}

func TestFramesThatAttackTheParserAreRefused(t *testing.T) {
	t.Parallel()
	nest := func(open, end string, n int) []byte {
		return []byte(`{"message_type":"approval_request_message","x":` + strings.Repeat(open, n) + strings.Repeat(end, n) + "}")
	}
	wantError(t, nest("[", "]", 200_000), InvalidFrame, "nested deeper than 512")
	wantError(t, nest(`{"a":`, "}", 200_000), InvalidFrame, "nested deeper than 512")
	wantError(t, []byte(strings.Repeat("[", 1_000_000)), InvalidFrame, "nested deeper")
	wantError(t, []byte("{\"a\":\"\xff\xfe\"}"), InvalidFrame, "UTF-8")
	wantError(t, nil, InvalidFrame, "not valid JSON")
	wantError(t, []byte(`{"a":1`), InvalidFrame, "not valid JSON")
	wantError(t, []byte(`{"a":"\ud8"}`), InvalidFrame, "not valid JSON")
	wantError(t, []byte("{"+strings.Repeat(`"":0,`, 100_000)+`"":0}`), InvalidFrame, "more than 256 members")
	wantError(t, []byte(`{"message_type":"approval_request_message","tool_calls":[`+strings.Repeat("0,", 100_000)+`0]}`),
		InvalidFrame, "tool_calls must be there once")
	wantError(t, []byte(`{"role":"assistant","content":[`+strings.Repeat("0,", 1024)+`0]}`), InvalidFrame, "content")
	wantError(t, []byte(`{"message_type":"`+strings.Repeat("x", 10_000)+`"}`), InvalidFrame, "message_type must be")
	wantError(t, []byte(`{"message_type":"approval_request_message","tool_call":{"tool_call_id":"`+strings.Repeat("x", 257)+`"}}`),
		MissingToolCallID, "256 bytes")
}

func TestAnErrorDoesNotRepeatAHostileName(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("x\u001b[2J", 10_000)
	frame := `{"message_type":"cancel","all":true,` + strings.Repeat(`"a`+strings.ReplaceAll(name, "\u001b", `\u001b`)+`":1,`, 20) + `"tool_call_id":"c"}`
	_, errs := (&Decoder{}).Decode([]byte(frame))
	if len(errs) != 1 || len(errs[0].Message) > 1500 || strings.Contains(errs[0].Message, "\u001b") {
		t.Errorf("got %.300q", errs)
	}
}

func TestNestingInsideStringsDoesNotCount(t *testing.T) {
	t.Parallel()
	text := must.Get(json.Marshal(strings.Repeat("[{\"", 10_000)))(t)
	frame := `{"message_type":"approval_request_message","tool_call":{"tool_call_id":"c","name":"b","arguments":{"x":` + string(text) + `}}}`
	request := decodeOne(t, &Decoder{}, frame).(*Request)
	if want := `{"x":` + string(text) + `}`; string(request.Calls[0].Arguments) != want {
		t.Error("the arguments were changed")
	}
}

func TestDiscriminatorsAreTriedInOrder(t *testing.T) {
	t.Parallel()
	d := &Decoder{}
	const call = `"tool_call":{"tool_call_id":"c","name":"b","arguments":{}}`
	for _, frame := range []string{
		`{"message_type":"approval_request_message","type":"x","role":"y",` + call + `}`,
		`{"message_type":null,"type":"approval_request_message","role":"y",` + call + `}`,
	} {
		if _, ok := decodeOne(t, d, frame).(*Request); !ok {
			t.Errorf("%s is no request", frame)
		}
	}
}

func fragmentFrame(id, run, piece string) string {
	text, _ := json.Marshal(piece)
	return fmt.Sprintf(`{"message_type":"approval_request_message","run_id":%q,"tool_calls":{"tool_call_id":%q,"name":"b","arguments":%s}}`, run, id, text)
}

const stopFrame = `{"message_type":"stop_reason","stop_reason":"requires_approval"}`

func TestCollectedFragmentsAreBounded(t *testing.T) {
	t.Parallel()
	d := &Decoder{MaxFragmentCalls: 2, MaxFragmentBytes: 10}
	for _, id := range []string{"c1", "c2"} {
		if in, errs := d.Decode([]byte(fragmentFrame(id, "", "12345"))); in != nil || errs != nil {
			t.Fatal(in, errs)
		}
	}
	_, errs := d.Decode([]byte(fragmentFrame("c3", "", "")))
	if len(errs) != 1 || errs[0].Type != InvalidFrame || errs[0].CallID != "c3" {
		t.Errorf("a third call: got %v, want invalid_frame that names it", errs)
	}
	d.Decode([]byte(fragmentFrame("c2", "", "6")))
	request := decodeOne(t, d, stopFrame).(*Request)
	if request.Calls[0].Invalid != "" || !strings.Contains(request.Calls[1].Invalid, "longer than toold collects") {
		t.Errorf("got %+v, want the second call refused for its length", request.Calls)
	}
	d.Decode([]byte(fragmentFrame("c4", "", "1234567890")))
	if request := decodeOne(t, d, stopFrame).(*Request); request.Calls[0].Invalid != "" {
		t.Errorf("the bounds did not start anew: %+v", request.Calls)
	}
}

func TestAClientCannotGrowTheDecoderWithRuns(t *testing.T) {
	t.Parallel()
	d := &Decoder{}
	for i := range 1000 {
		run := fmt.Sprint("run", i)
		d.Decode([]byte(fragmentFrame("c", run, "")))
		d.Decode([]byte(fragmentFrame("d", run, "")))
		d.Decode([]byte(`{"role":"assistant","tool_calls":[{"id":"d","function":{"name":"b"}}]}`))
	}
	if len(d.runs) > 1 || d.calls != 1 {
		t.Errorf("%d runs, %d calls are kept, want 1 and 1", len(d.runs), d.calls)
	}
}

// from returns a frame with members before its own.
func from(frame, members string) string { return strings.Replace(frame, `{`, `{`+members, 1) }

func wantNothing(t *testing.T, d *Decoder, frames ...string) {
	t.Helper()
	for _, frame := range frames {
		if in, errs := d.Decode([]byte(frame)); in != nil || errs != nil {
			t.Fatalf("%s: got %s", frame, describe(in, errs))
		}
	}
}

func wantFrameError(t *testing.T, d *Decoder, frame, text string) {
	t.Helper()
	in, errs := d.Decode([]byte(frame))
	if len(in) > 0 || len(errs) != 1 || errs[0].Type != InvalidFrame || !strings.Contains(errs[0].Message, text) {
		t.Errorf("%s: got %s, want an error about %q", frame, describe(in, errs), text)
	}
}

func asked(in Inbound) (got string) {
	r := in.(*Request)
	for _, c := range r.Calls {
		got += fmt.Sprintf("%s%s %s %s %s;", r.AgentID, r.ConversationID, c.ID, c.Arguments, c.Invalid)
	}
	return got
}

func TestFragmentsOfDifferentAgentsStayApart(t *testing.T) {
	t.Parallel()
	for name, member := range map[string]string{"agents": "agent_id", "conversations": "conversation_id"} {
		for _, ids := range [][2]string{{"c1", "c2"}, {"c1", "c1"}} {
			of := func(i int) string { return fmt.Sprintf(`%q:"of-%d",`, member, i) }
			d := &Decoder{}
			for _, piece := range []string{`{"a":`, `1}`} {
				for i, id := range ids {
					wantNothing(t, d, from(fragmentFrame(id, "", piece), of(i)))
				}
			}
			wantFrameError(t, d, stopFrame, "several agents or conversations")
			for i, id := range ids {
				got := asked(decodeOne(t, d, from(stopFrame, of(i))))
				if want := fmt.Sprintf(`of-%d %s {"a":1} ;`, i, id); got != want {
					t.Errorf("%s: got %s, want %s", name, got, want)
				}
			}
			wantNothing(t, d, stopFrame)
		}
	}
}

// What a stop_reason does not name may only be what cannot be told apart.
func TestAStopReasonEndsTheFragmentsOfOneConversation(t *testing.T) {
	t.Parallel()
	open := map[string]string{ // the call by the members of its fragment
		"a1-c1": `"agent_id":"a1","conversation_id":"c1","run_id":"r1",`, "a1-c2": `"agent_id":"a1","conversation_id":"c2","run_id":"r2",`,
		"a2": `"agent_id":"a2","run_id":"r2",`, "a2-r3": `"agent_id":"a2","run_id":"r3",`, "a2-no-run": `"agent_id":"a2",`, "none": ``,
	}
	const several = "several"
	for _, c := range []struct{ open, stop, want string }{
		{"a1-c1 a2", ``, several},
		{"a1-c1 none", ``, several},
		{"a1-c1 a1-c2", `"agent_id":"a1",`, several},
		{"a1-c1 a1-c2", `"conversation_id":"c2",`, "a1-c2"},
		{"a1-c1 a1-c2 a2", `"run_id":"r2",`, several},
		{"a1-c1 a1-c2", `"run_id":"r2",`, "a1-c2"},
		{"a1-c1 none", `"run_id":"r1",`, "a1-c1"},
		{"a1-c1 a2 none", `"agent_id":"a1","conversation_id":"c1",`, "a1-c1"},
		{"a1-c1 a2 none", `"agent_id":"a1",`, several},
		{"a1-c1 a2", `"agent_id":"a1",`, "a1-c1"},
		{"a1-c1 a2", `"agent_id":"a3",`, ""},
		{"a2 a2-r3 a2-no-run", ``, "a2 a2-r3 a2-no-run"},
		{"a1-c1 a2 a2-r3 a2-no-run none", `"agent_id":"a2","run_id":"r3",`, "a2-r3 a2-no-run"},
		{"a1-c1 a2 a2-r3 a2-no-run", `"run_id":"r3",`, "a2-r3 a2-no-run"},
		{"none", `"agent_id":"a1","run_id":"r1",`, "none"},
	} {
		for _, reason := range []string{"requires_approval", "cancelled"} {
			d := &Decoder{}
			for id := range strings.FieldsSeq(c.open) {
				frame := strings.Replace(fragmentFrame(id, "", `{}`), `"run_id":"",`, "", 1)
				wantNothing(t, d, from(frame, open[id]))
			}
			in, errs := d.Decode([]byte(`{` + c.stop + `"message_type":"stop_reason","stop_reason":"` + reason + `"}`))
			if refused := len(errs) == 1 && errs[0].Type == InvalidFrame; refused != (c.want == several) {
				t.Errorf("%v, %s: got %s", c, reason, describe(in, errs))
			}
			var ran []string
			for _, m := range in {
				for _, call := range m.(*Request).Calls {
					ran = append(ran, call.ID)
				}
			}
			ended := strings.Fields(strings.TrimPrefix(c.want, several))
			if want := len(strings.Fields(c.open)) - len(ended); d.calls != want {
				t.Errorf("%v, %s: %d calls are still collected, want %d", c, reason, d.calls, want)
			}
			if reason == "cancelled" {
				ended = nil
			}
			if !slices.Equal(ran, ended) {
				t.Errorf("%v, %s: %q ran", c, reason, ran)
			}
		}
	}
}

// A frame that names no agent or conversation may mean those of any. Pieces must not be lost unheard: what is left may be
// another call.
func TestAFragmentWithoutNamesIsAPartOfTheOneCallOfItsID(t *testing.T) {
	t.Parallel()
	const whole, a1, a2 = `"agent_id":"a1","conversation_id":"c1",`, `"agent_id":"a1",`, `"agent_id":"a2",`
	piece := func(names, id, text string) string { return from(fragmentFrame(id, "", text), names) }
	for _, names := range []string{whole, a1, `"conversation_id":"c1",`, ``} {
		d := &Decoder{}
		wantNothing(t, d, piece(whole, "x", `{"a":`), piece(a2, "y", `{}`), piece(names, "x", `1}`))
		if got := asked(decodeOne(t, d, from(stopFrame, whole))); got != `a1c1 x {"a":1} ;` {
			t.Errorf("with %s: got %s", names, got)
		}
	}
	d := &Decoder{}
	wantNothing(t, d, piece(a1, "x", `{"a":"1`), piece(a2, "x", `{"a":"1`))
	wantFrameError(t, d, piece(``, "x", ` and 2`), "several agents or conversations")
	wantFrameError(t, d, `{"message_type":"approval_request_message","tool_call":{"tool_call_id":"x","arguments":" and 2"}}`, "several agents or conversations")
	wantNothing(t, d, piece(a1, "x", `"}`), piece(a2, "x", `"}`))
	for _, names := range []string{a1, a2} {
		if got := asked(decodeOne(t, d, from(stopFrame, names))); !strings.Contains(got, "was not joined") {
			t.Errorf("a call without one of its pieces would run: %s", got)
		}
	}
}

func TestAWholeCallReplacesTheFragmentsThatItMayMeanAlone(t *testing.T) {
	t.Parallel()
	const a1, a2, call = `"agent_id":"a1",`, `"agent_id":"a2",`, `{"message_type":"approval_request_message","tool_calls":[{"tool_call_id":"x","name":"b","arguments":"{}"}]}`
	for _, c := range []struct {
		of   []string
		call string
		left int
	}{
		{[]string{a1}, a1, 0}, {[]string{a1}, ``, 0}, {[]string{a1}, a2, 1}, {[]string{``}, a1, 1}, {[]string{a1, a2}, ``, 2}, {[]string{a1, a2}, a2, 1},
	} {
		d := &Decoder{}
		for _, names := range c.of {
			wantNothing(t, d, from(fragmentFrame("x", "", `{`), names))
		}
		if decodeOne(t, d, from(call, c.call)); d.calls != c.left || d.Held() != c.left {
			t.Errorf("%v: %d calls are still collected", c, d.calls)
		}
	}
}

func TestTypeIsNoFilterBesideMessageType(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"subscribe", "list_messages"} {
		for _, members := range []string{`"type":"return"`, `"type":7`} {
			wantError(t, []byte(`{"message_type":"`+kind+`",`+members+`}`), InvalidArguments, "type is no field of this frame")
		}
		for _, members := range []string{`"type":"` + kind + `"`, `"message_type":"` + kind + `","type":"` + kind + `"`} {
			decodeOne(t, &Decoder{}, `{`+members+`}`)
		}
		wantError(t, []byte(`{"message_type":"`+kind+`","type":"`+kind+`","type":"return"}`), InvalidFrame, "type is there twice")
	}
}

// FuzzDecode checks what the rest of toold relies on: no panic, a call has an
// id once, and what is no JSON asks for nothing.
func FuzzDecode(f *testing.F) {
	names, _ := filepath.Glob("testdata/*.txtar")
	for _, name := range names {
		archive := must.Get(txtar.ParseFile(name))(f)
		for _, file := range archive.Files {
			frames := slices.DeleteFunc(strings.Split(string(file.Data), "\n"), func(s string) bool { return s == "" || s[0] == '>' })
			f.Add([]byte(strings.Join(frames, "\n")))
			for _, frame := range frames {
				f.Add([]byte(frame))
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d := &Decoder{MaxFragmentCalls: 4, MaxFragmentBytes: 64}
		for frame := range bytes.SplitSeq(data, []byte("\n")) {
			in, errs := d.Decode(frame)
			if len(in) > 0 && !json.Valid(frame) {
				t.Errorf("a frame that is no JSON asked for %s", describe(in, errs))
			}
			if !json.Valid(frame) && len(errs) == 0 {
				t.Error("a frame that is no JSON was not answered")
			}
			for _, i := range in {
				if r, ok := i.(*Request); ok {
					checkRequest(t, r)
				}
			}
		}
		if d.calls > 4 || d.bytes > 64 {
			t.Errorf("%d calls of %d bytes are collected", d.calls, d.bytes)
		}
	})
}

func checkRequest(t *testing.T, r *Request) {
	t.Helper()
	seen := map[string]bool{}
	for _, c := range r.Calls {
		if c.ID == "" || len(c.ID) > MaxID || seen[c.ID] {
			t.Errorf("the id %q is empty, long or there twice", c.ID)
		}
		if c.Name == "" && c.Invalid == "" {
			t.Errorf("call %q names no tool and is not refused", c.ID)
		}
		seen[c.ID] = true
	}
	if len(r.Calls) == 0 {
		t.Errorf("a request without calls: %+v", r)
	}
}

func BenchmarkDecodeSmallCall(b *testing.B) {
	frame := []byte(`{"message_type":"approval_request_message","id":"message-1","tool_call":{"tool_call_id":"call_1","tool_name":"bash","arguments":{"command":"true"}}}`)
	d := &Decoder{}
	b.ReportAllocs()
	for b.Loop() {
		d.Decode(frame)
	}
}
