package letta

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/interop/link"
	"github.com/toold/toold/message"
)

// server answers the requests of a follower without a network.
type server func(path string, body []byte) *http.Response

func (s server) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	return s(r.Method+" "+r.URL.Path, body), nil
}

// newFollower follows a conversation of s. There is no daemon.
func newFollower(s server) *follower {
	daemon := link.New(func(context.Context, string) (*client.Client, error) { return nil, errors.New("no daemon") })
	b := &bridge{Options: Options{URL: "http://letta", Say: func(string) {}}, agent: "agent-1", conversation: "default", daemon: daemon}
	return &follower{bridge: b, http: http.Client{Transport: s}}
}

func stream(body io.Reader) *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(body)}
}

func refusal(text string) *http.Response {
	return &http.Response{StatusCode: http.StatusBadRequest, Body: io.NopCloser(strings.NewReader(text))}
}

const stop = "data: {\"message_type\":\"stop_reason\",\"stop_reason\":\"requires_approval\"}\n\ndata: [DONE]\n\n"

// A server that expects the answers to other calls each time gets them with growing pauses,
// and always what came of the calls.
func TestAnswersThatTheServerExpectsOtherwiseAreSentAgainWithPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var posts []string
		h := newFollower(func(path string, body []byte) *http.Response {
			switch {
			case path != "POST /v1/agents/agent-1/messages":
				return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("[]"))}
			case len(posts) == 4:
				return stream(strings.NewReader("data: [DONE]\n\n"))
			}
			posts = append(posts, string(body))
			return refusal(fmt.Sprintf(`{"detail":"Invalid tool call IDs. Expected '%s'"}`, []string{"['a', 'b']", "['a']"}[len(posts)%2]))
		})
		began := time.Now()
		calls := []message.ToolCall{{ID: "a", Name: "bash", Arguments: json.RawMessage("{}")}, {ID: "b", Name: "bash", Arguments: json.RawMessage("{}")}}
		must.Get(h.answer(t.Context(), calls))(t)
		if took, want := time.Since(began), 15*firstPause; took != want {
			t.Errorf("4 refused attempts took %v, want %v", took, want)
		}
		if strings.Count(posts[2], "no daemon") != 2 {
			t.Errorf("the answer to b was lost when it was not expected for a while: %s", posts[2])
		}
	})
}

// A stream that ends at once is asked for with growing pauses.
func TestAStreamThatIsLostAgainAndAgainIsAskedForWithPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		h := newFollower(func(string, []byte) *http.Response {
			if asked++; asked > 4 {
				return refusal("over")
			}
			return stream(strings.NewReader(""))
		})
		began := time.Now()
		if calls, err := h.attach(t.Context()); err != nil || calls != nil {
			t.Errorf("got %v, %v", calls, err)
		}
		if took, want := time.Since(began), 15*firstPause; took != want {
			t.Errorf("4 lost streams took %v, want %v", took, want)
		}
	})
}

// A stream whose messages have no numbers begins again after it was lost: its parts are not
// added to those that came before.
func TestACallOfAStreamThatBeginsAgainIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fragment := func(text string) string {
			return fmt.Sprintf(`data: {"message_type":"approval_request_message","id":"m1","run_id":"run-1","tool_calls":{"tool_call_id":"c1","name":"bash","arguments":%q}}`+"\n\n", text)
		}
		bodies := []string{fragment(`{"command":`), fragment(`{"command":`) + fragment(`"true"}`) + stop}
		h := newFollower(func(string, []byte) *http.Response {
			body := bodies[0]
			bodies = bodies[1:]
			return stream(strings.NewReader(body))
		})
		calls, err := h.attach(t.Context())
		if err != nil || len(calls) != 1 || calls[0].Invalid != "" || string(calls[0].Arguments) != `{"command":"true"}` {
			t.Errorf("got %+v, %v", calls, err)
		}
	})
}

// What ends a stream counts at once, also when the connection stays open.
func TestAStreamThatHasEndedIsNotReadOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFollower(func(string, []byte) *http.Response {
			open, _ := io.Pipe()
			resp := stream(io.MultiReader(strings.NewReader(stop), open))
			resp.Body = struct {
				io.Reader
				io.Closer
			}{resp.Body, open}
			return resp
		})
		began := time.Now()
		if _, err := h.attach(t.Context()); err != nil || time.Since(began) != 0 {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestAMessageWithoutEndIsNotKept(t *testing.T) {
	t.Parallel()
	line := append(append([]byte("data: "), bytes.Repeat([]byte("x"), 1<<20)...), '\n')
	var parts []io.Reader
	for range 2 * maxMessage >> 20 {
		parts = append(parts, bytes.NewReader(line))
	}
	end := &io.LimitedReader{R: strings.NewReader("the end"), N: 7}
	r := &run{follower: newFollower(nil)}
	if err := r.read(stream(io.MultiReader(append(parts, end)...))); err == nil || end.N == 0 {
		t.Errorf("all was read: %v", err)
	}
}

// Names of fields are those that Letta reads: another spelling is another field, and of two members none is believed.
func TestMessagesAreReadAsTheServerMeansThem(t *testing.T) {
	t.Parallel()
	const request = `{"message_type":"approval_request_message","id":"m1","tool_call":{"tool_call_id":"c1","name":"bash","arguments":"{}"}%s}`
	for more, want := range map[string]int{
		``: 1, `,"Message_Type":"user_message"`: 1, `,"message_type":"user_message"`: -1,
	} {
		message := fmt.Sprintf(request, more)
		h := newFollower(func(string, []byte) *http.Response {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("[" + message + "]"))}
		})
		calls, err := h.pending(t.Context())
		if (err != nil) != (want < 0) || err == nil && len(calls) != want {
			t.Errorf("%s: got %+v, %v", message, calls, err)
		}
	}
	frames := []string{
		`{"type":"update_loop_status","Type":"control_request","REQUEST":{"tool_name":"Bash"},"request":{"tool_name":"Read","Tool_Name":"Bash"}}`,
		`{"type":"control_request","request":{"tool_name":"Read","tool_name":"Bash"}}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer ws.Close()
		for _, f := range frames {
			ws.WriteMessage(websocket.TextMessage, []byte(f))
		}
		ws.ReadMessage() // until the client has gone
	}))
	defer server.Close()
	c := must.Get(dial(t.Context(), "ws"+strings.TrimPrefix(server.URL, "http"), ""))(t)
	defer c.ws.Close()
	if f, err := c.read(); err != nil || f.Type != "update_loop_status" || f.Request.ToolName != "Read" {
		t.Errorf("got %+v, %v", f, err)
	}
	if f, err := c.read(); !errors.Is(err, errRefused) || !strings.Contains(err.Error(), "request") {
		t.Errorf("got %+v, %v, want a refusal that names the field", f, err)
	}
}

// Another server gets neither requests nor results.
func TestAnotherServerIsNotFollowed(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the other server was asked for %s", r.URL)
	}))
	defer other.Close()
	first := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer first.Close()
	dial := func(context.Context, string) (*client.Client, error) { return nil, errors.New("no daemon") }
	err := Run(t.Context(), Options{URL: first.URL, Conversations: []string{"default"}, Dial: dial, Say: func(string) {}})
	if err == nil || !strings.Contains(err.Error(), other.URL) || !strings.Contains(err.Error(), "--url") {
		t.Errorf("got %v, want the address of the other server", err)
	}
}

// Only what the daemon allowed is approved, whatever the text of its answer.
func TestOnlyAYesIsApproved(t *testing.T) {
	for _, c := range []struct {
		of   outcome
		want bool
	}{{outcome{}, false}, {outcome{text: "Error: "}, false}, {outcome{text: "no"}, false}, {outcome{ok: true}, true}, {outcome{text: "yes", ok: true}, true}} {
		if got := decided("c1", c.of); got["approve"] != c.want || !c.want && got["reason"] == "" {
			t.Errorf("%+v is answered with %v", c.of, got)
		}
	}
}

// A server may go on with calls for as long as it wants: what is kept of them is bounded.
func TestAnEndlessStreamOfCallsIsNotKept(t *testing.T) {
	t.Parallel()
	h := newFollower(func(string, []byte) *http.Response { return refusal("over") })
	read, write := io.Pipe()
	// Ends with the stream.
	go func() {
		for i := range 6000 {
			fmt.Fprintf(write, "data: {\"message_type\":\"approval_request_message\",\"id\":\"m%d\",\"tool_call\":{\"tool_call_id\":\"c%d\",\"name\":\"bash\",\"arguments\":\"{\\\"command\\\":\\\"%s\\\"}\"}}\n\n", i, i, strings.Repeat("x", 4<<10))
		}
		io.WriteString(write, stop)
		write.Close()
	}()
	r := &run{follower: h}
	calls := must.Get(r.follow(t.Context(), stream(read)))(t)
	total := 0
	for _, c := range calls {
		total += len(c.Arguments)
	}
	if len(calls) > 4096 || total > 1<<20 {
		t.Errorf("%d calls with arguments of %d bytes are kept", len(calls), total)
	}
	var large gathered
	for i := range 8 {
		large.put(message.ToolCall{ID: fmt.Sprint(i), Name: "bash", Arguments: make(json.RawMessage, 16<<20)})
	}
	if large.bytes > 64<<20 || large.calls[0].Invalid != "" || large.calls[7].Invalid == "" {
		t.Errorf("calls with %d bytes are kept, the last one is invalid because %q", large.bytes, large.calls[7].Invalid)
	}
}
