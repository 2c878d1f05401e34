package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

// fuzzedFrames is how many frames of an input are sent: fewer than the invalid ones in a row
// that end a connection.
const fuzzedFrames = 50

// FuzzSession sends the lines of its input as frames: those that begin with ! as a person who
// approves and subscribes, all others as an agent. Whatever they are, both connections go on,
// each frame that is wrong and each that has a request_id is answered, no frame meets a fault
// of toold's own, each call is answered, and none runs twice.
func FuzzSession(f *testing.F) {
	for _, seed := range fuzzSeeds(f) {
		f.Add(seed)
	}
	var ran atomic.Int64
	ts := newCallServer(f, policy.Ask, func(ctx context.Context, io tools.IO) tools.Result {
		ran.Add(1)
		return hello(ctx, io)
	})
	requested := map[fuzzedCall]bool{} // the journal is one for all inputs
	f.Fuzz(func(t *testing.T, data string) {
		agent, person := newFuzzed(t, ts, agentSecret), newFuzzed(t, ts, approverSecret)
		for i, frame := range strings.Split(data, "\n") {
			if i == fuzzedFrames {
				break
			}
			if text, ok := strings.CutPrefix(frame, "!"); ok {
				person.send(text)
			} else {
				agent.send(text)
			}
		}
		agent.send(`{"message_type":"cancel","all":true}`)
		person.check()
		agent.check()
		maps.Copy(requested, agent.calls)
		if n := ran.Load(); n > int64(len(requested)) {
			t.Fatalf("%d calls ran of %d that were requested", n, len(requested))
		}
	})
}

// fuzzSeeds are the transcripts of the dialects, and frames that belong together.
func fuzzSeeds(f *testing.F) []string {
	f.Helper()
	seeds := []string{
		call("c1") + "\n" + `!{"message_type":"approval_response_message","approvals":[{"type":"approval","tool_call_id":"c1","approve":true}]}`,
		`!{"message_type":"subscribe","request_id":"s","after":0,"output":true}` + "\n" + call("c2") + "\n" + `!{"message_type":"unsubscribe","request_id":"u"}`,
		`!{"message_type":"subscribe","request_id":"s","topics":["return"],"agent_id":"x"}` + "\n" + `!{"message_type":"subscribe","request_id":"again"}`,
		call("c3") + "\n" + call("c3") + "\n" + `{"message_type":"cancel","tool_call_id":"c3","reason":"no"}` + "\n" + `{"message_type":"list_calls","request_id":"q","all":true}`,
		`{"message_type":"cancel","tool_call_id":"c4"}` + "\n" + call("c4") + "\n" + `{"message_type":"tool_input","request_id":"i","tool_call_id":"c4","data":"x"}`,
		`{"message_type":"hello","output":"binary"}` + "\n" + `{"message_type":"approval_request_message","tool_call":{"tool_call_id":"c5","tool_name":"shout","arguments":{"background":true}}}` + "\n" +
			`!{"message_type":"approval_response_message","approve":true,"approval_request_id":"c5"}`,
		`{"message_type":"hello","resume":{"last_event_seq":3}}` + "\n" + `{"message_type":"get_output","request_id":"o","tool_call_id":"c1","stream":"stdout","offset":0}`,
		`{"message_type":"list_messages","request_id":"m","limit":3,"order":"asc"}` + "\n" + `!{"message_type":"list_approvals","request_id":"l"}`,
		`{"message_type":"explain_policy","request_id":"e","call":{"tool_call_id":"c6","tool_name":"shout","arguments":{"bad":1}}}`,
	}
	names, err := filepath.Glob("../../message/testdata/*.txtar")
	if err != nil || len(names) == 0 {
		f.Fatalf("no transcripts: %v", err)
	}
	for _, name := range names {
		archive := must.Get(txtar.ParseFile(name))(f)
		for _, file := range archive.Files {
			frames := slices.DeleteFunc(strings.Split(string(file.Data), "\n"), func(s string) bool { return s == "" || s[0] == '>' })
			seeds = append(seeds, strings.Join(frames, "\n"))
		}
	}
	return seeds
}

// fuzzed is one side of FuzzSession: what it sent, as the decoder reads it, and what came.
type fuzzed struct {
	t        *testing.T
	conn     *websocket.Conn
	decoder  *message.Decoder
	wrong    int             // frames that are to be answered by an error
	requests map[string]bool // the request ids that are to be answered
	calls    map[fuzzedCall]bool
	owed     map[string]bool // the ids of the calls, and of the items, that are to be answered

	mu     sync.Mutex
	frames [][]byte      // that came and have not been looked at
	came   chan struct{} // has an item when there are more; closed at the end of the connection
}

type fuzzedCall struct{ agent, id string }

func newFuzzed(t *testing.T, ts *httptest.Server, secret string) *fuzzed {
	x := &fuzzed{
		t: t, conn: dialAs(t, ts, secret), decoder: &message.Decoder{MaxFragmentBytes: 1 << 20},
		requests: map[string]bool{}, calls: map[fuzzedCall]bool{}, owed: map[string]bool{}, came: make(chan struct{}, 1),
	}
	var reading sync.WaitGroup
	// Ends when the connection does.
	reading.Go(x.read)
	t.Cleanup(func() { x.conn.Close(); reading.Wait() })
	return x
}

func (x *fuzzed) read() {
	defer close(x.came)
	for {
		kind, frame, err := x.conn.ReadMessage()
		if err != nil {
			return
		}
		if kind != websocket.TextMessage {
			continue
		}
		x.mu.Lock()
		x.frames = append(x.frames, frame)
		x.mu.Unlock()
		select {
		case x.came <- struct{}{}:
		default:
		}
	}
}

// send sends a frame and notes what has to come of it.
func (x *fuzzed) send(frame string) {
	in, wrong := x.decoder.Decode([]byte(frame))
	x.wrong += len(wrong)
	for _, m := range in {
		if r, ok := m.(*message.Request); ok {
			for _, c := range r.Calls {
				x.calls[fuzzedCall{r.AgentID, c.ID}] = true
				x.owed[cmp.Or(r.Item, c.ID)] = true
			}
		}
		if id := reflect.ValueOf(m).Elem().FieldByName("RequestID"); id.IsValid() && id.String() != "" {
			x.requests[id.String()] = true
		}
	}
	write(x.t, x.conn, frame)
}

// check waits until all has been answered.
func (x *fuzzed) check() {
	nonce := message.NewID("nonce")
	write(x.t, x.conn, fmt.Sprintf(`{"message_type":"ping","nonce":%q}`, nonce))
	unanswered := maps.Clone(x.owed)
	wrong, pong := x.wrong, false
	for !pong || wrong > 0 || len(x.requests) > 0 || len(unanswered) > 0 {
		if _, open := <-x.came; !open {
			x.t.Fatalf("the connection ended; the requests %v, the calls %v and %d faults are unanswered", x.requests, unanswered, wrong)
		}
		x.mu.Lock()
		frames := x.frames
		x.frames = nil
		x.mu.Unlock()
		for _, frame := range frames {
			var m struct {
				Type      string `json:"message_type"`
				Nonce     string `json:"nonce"`
				RequestID string `json:"request_id"`
				CallID    string `json:"tool_call_id"`
				ErrorType string `json:"error_type"`
				Role      string `json:"role"`
				Item      string `json:"call_id"`
				ToolUse   string `json:"tool_use_id"`
			}
			if err := json.Unmarshal(frame, &m); err != nil || m.ErrorType == "internal_error" {
				x.t.Fatalf("got %s (%v)", frame, err)
			}
			pong = pong || m.Nonce == nonce
			delete(x.requests, m.RequestID)
			fault := m.Type == "error_message"
			if fault {
				wrong--
			}
			if fault || m.Type == "tool_return_message" || m.Role == "tool" {
				delete(unanswered, m.CallID)
			}
			delete(unanswered, m.Item)
			delete(unanswered, m.ToolUse)
		}
	}
}
