//go:build linux

package conformance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// move is what a scripted model answers: a call of a tool of Codex, or a text.
type move struct {
	tool string
	args map[string]any // session_id "$" is the latest session
	text string
}

// model speaks the Responses API of OpenAI. It plays moves, one a request, and then says
// "done"; it keeps what Codex has sent as the outputs of its calls.
type model struct {
	*httptest.Server
	moves []move

	mu      sync.Mutex
	turn    int
	outputs map[string]string // by call
}

// sessionID is how Codex tells a model of a command that runs on.
var sessionID = regexp.MustCompile(`session ID (\d+)`)

// newModel serves on loopback until the test ends.
func newModel(t *testing.T, moves ...move) *model {
	t.Helper()
	m := &model{moves: moves, outputs: map[string]string{}}
	m.Server = httptest.NewServer(http.HandlerFunc(m.serve))
	t.Cleanup(m.Close)
	return m
}

func (m *model) serve(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/responses") {
		http.NotFound(w, r)
		return
	}
	var q struct{ Input []map[string]any }
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	session := 0
	for _, item := range q.Input {
		if kind, _ := item["type"].(string); strings.HasSuffix(kind, "_output") {
			text := fmt.Sprint(item["output"])
			m.outputs[fmt.Sprint(item["call_id"])] = text
			if found := sessionID.FindStringSubmatch(text); found != nil {
				fmt.Sscan(found[1], &session)
			}
		}
	}
	m.turn++
	now := move{text: "done"}
	if m.turn <= len(m.moves) {
		now = m.moves[m.turn-1]
	}
	id := fmt.Sprintf("resp_%d", m.turn)
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(kind string, fields map[string]any) {
		fields["type"] = kind
		text, _ := json.Marshal(fields)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, text)
	}
	send("response.created", map[string]any{"response": map[string]any{"id": id}})
	send("response.output_item.done", map[string]any{"item": now.item(m.turn, session)})
	send("response.completed", map[string]any{"response": map[string]any{
		"id": id, "usage": map[string]any{"input_tokens": 1, "input_tokens_details": nil, "output_tokens": 1, "output_tokens_details": nil, "total_tokens": 2},
	}})
}

// item is a move on the wire.
func (v move) item(turn, session int) map[string]any {
	if v.tool == "" {
		return map[string]any{"type": "message", "role": "assistant", "id": "m1", "content": []any{map[string]any{"type": "output_text", "text": v.text}}}
	}
	args := map[string]any{}
	for name, value := range v.args {
		if value == "$" {
			value = session
		}
		args[name] = value
	}
	text, _ := json.Marshal(args)
	return map[string]any{"type": "function_call", "call_id": fmt.Sprintf("call_%d", turn), "name": v.tool, "arguments": string(text)}
}

// saw returns what came of a call, as the model saw it; moves count from 1.
func (m *model) saw(move int) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.outputs[fmt.Sprintf("call_%d", move)]
}
