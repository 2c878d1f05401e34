//go:build linux

package conformance

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// subagent is a part of the prompt of a subagent, by which its requests are known.
const subagent = "SUBAGENT"

// claudeModel speaks the Messages API of Anthropic. It plays moves, one a request, those of
// a subagent apart, and then says "done". It keeps what came of the calls, in their order.
type claudeModel struct {
	*httptest.Server
	moves map[bool][]move // by whether a subagent plays them

	mu    sync.Mutex
	turn  map[bool]int
	ids   map[bool][]string // of calls
	saws  map[string]string // by id
	tools []string          // that the model is offered
}

// newClaudeModel serves on loopback until the test ends.
func newClaudeModel(t *testing.T, moves, sub []move) *claudeModel {
	t.Helper()
	m := &claudeModel{
		moves: map[bool][]move{false: moves, true: sub}, turn: map[bool]int{}, ids: map[bool][]string{}, saws: map[string]string{},
	}
	m.Server = httptest.NewServer(http.HandlerFunc(m.serve))
	t.Cleanup(m.Close)
	return m
}

type claudeRequest struct {
	Model    string
	Tools    []struct{ Name string }
	Messages []struct{ Content json.RawMessage }
}

func (m *claudeModel) serve(w http.ResponseWriter, r *http.Request) {
	var q claudeRequest
	if !strings.HasPrefix(r.URL.Path, "/v1/messages") || strings.Contains(r.URL.Path, "count_tokens") || json.NewDecoder(r.Body).Decode(&q) != nil {
		fmt.Fprint(w, `{"input_tokens":1}`)
		return
	}
	now, id := m.next(q)
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(kind, fields string) {
		fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q,%s}\n\n", kind, kind, strings.TrimPrefix(fields, ","))
	}
	send("message_start", `"message":{"id":"m1","type":"message","role":"assistant","model":"scripted","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`)
	block, delta, why := `{"type":"text","text":""}`, map[string]any{"type": "text_delta", "text": "done"}, "end_turn"
	if now.tool != "" {
		text, _ := json.Marshal(now.args)
		block, why = fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, id, now.tool), "tool_use"
		delta = map[string]any{"type": "input_json_delta", "partial_json": string(text)}
	}
	text, _ := json.Marshal(delta)
	send("content_block_start", `"index":0,"content_block":`+block)
	send("content_block_delta", `"index":0,"delta":`+string(text))
	send("content_block_stop", `"index":0`)
	send("message_delta", fmt.Sprintf(`"delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":1}`, why))
	send("message_stop", `"x":0`)
}

// next notes what a request says of earlier calls, and chooses the move that answers it.
func (m *claudeModel) next(q claudeRequest) (now move, id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, message := range q.Messages {
		var parts []struct {
			Type      string
			ToolUseID string `json:"tool_use_id"`
			Content   json.RawMessage
		}
		_ = json.Unmarshal(message.Content, &parts) // else it is a text
		for _, p := range parts {
			if p.Type == "tool_result" {
				m.saws[p.ToolUseID] = readable(p.Content)
			}
		}
	}
	if len(q.Tools) == 0 || len(q.Messages) == 0 {
		return now, "" // a request of another kind, such as for a title
	}
	m.tools = m.tools[:0]
	for _, tool := range q.Tools {
		m.tools = append(m.tools, tool.Name)
	}
	sub := strings.Contains(string(q.Messages[0].Content), subagent)
	if m.turn[sub] < len(m.moves[sub]) {
		now, id = m.moves[sub][m.turn[sub]], "toolu_"+rand.Text()
		m.turn[sub]++
		m.ids[sub] = append(m.ids[sub], id)
	}
	return now, id
}

// readable is the text of a result, which may be a list of parts.
func readable(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) != nil {
		text = string(content)
	}
	text, _, _ = strings.Cut(text, "\n\n<system-reminder>")
	return text
}

// saw returns the id of a call, and what came of it as the model saw it; moves count from 1.
func (m *claudeModel) saw(sub bool, move int) (id, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if move > len(m.ids[sub]) {
		return "", ""
	}
	id = m.ids[sub][move-1]
	return id, m.saws[id]
}
