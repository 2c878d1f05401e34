//go:build linux

package conformance

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// move is a call that a scripted model makes.
type move struct {
	tool string
	args map[string]any // "$" is the id of the latest command that runs on
}

// subagent is a part of the prompt of a subagent, by which its requests are known.
const subagent = "SUBAGENT"

// model speaks the Responses API of OpenAI, the Messages API of Anthropic and the chat API
// of OpenAI. It plays moves, one a request, those of a subagent apart, and then says "done".
// It keeps what came of the calls.
type model struct {
	*httptest.Server

	mu    sync.Mutex
	moves map[bool][]move     // that are left, by whether a subagent plays them
	ids   map[bool][]string   // of the calls of the script
	saws  map[string]string   // by id
	tools map[string]struct{} // that it was offered
	on    string              // id of the latest command that runs on, as JSON
}

// newModel serves on loopback until the test ends.
func newModel(t testing.TB) *model {
	t.Helper()
	m := &model{saws: map[string]string{}, tools: map[string]struct{}{}}
	m.Server = httptest.NewServer(http.HandlerFunc(m.serve))
	t.Cleanup(m.Close)
	return m
}

// script begins another script.
func (m *model) script(moves, sub []move) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.moves, m.ids = map[bool][]move{false: moves, true: sub}, map[bool][]string{}
}

// saw returns the id of a call, and what came of it as the model saw it; moves count from 1.
func (m *model) saw(sub bool, move int) (id, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if move > len(m.ids[sub]) {
		return "", ""
	}
	id = m.ids[sub][move-1]
	return id, m.saws[id]
}

// expect checks texts in what the model saw of the moves of a script.
func (m *model) expect(t *testing.T, sees ...[]string) {
	t.Helper()
	for i, texts := range sees {
		m.contains(t, false, i+1, texts)
	}
}

func (m *model) contains(t *testing.T, sub bool, move int, texts []string) {
	t.Helper()
	_, saw := m.saw(sub, move)
	for _, text := range texts {
		if !strings.Contains(saw, text) {
			t.Errorf("of move %d the model saw %.600q, without %q", move, saw, text)
		}
	}
}

// request is what the three APIs have in common.
type request struct {
	prompt  string            // the first of a user
	results map[string]string // of calls
	tools   []string
}

func (m *model) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/responses"):
		q := readResponses(body)
		writeResponses(w, m.next(q))
	case strings.HasSuffix(path, "/messages"):
		q := readMessages(body)
		writeMessages(w, m.next(q))
	case strings.HasSuffix(path, "/chat/completions"):
		q := readChat(body)
		writeChat(w, m.next(q))
	case strings.HasSuffix(path, "count_tokens"):
		fmt.Fprint(w, `{"input_tokens":1}`)
	case strings.Contains(path, "/models") && r.Method == http.MethodGet: // as LM Studio has it
		const about = `{"id":"fake-model","key":"fake-model","object":"model","type":"llm","state":"loaded","max_context_length":100000,"loaded_context_length":100000,"display_name":"fake","loaded_instances":[{"id":"fake-model","config":{"context_length":100000}}]}`
		fmt.Fprintf(w, `{"object":"list","data":[%s],"models":[%s]}`, about, about)
	default:
		http.NotFound(w, r)
	}
}

// reply is a move and the id of its call, or "" for the text "done".
type reply struct {
	move
	id string
	on string // JSON
}

// runsOn is how agents say that a command, or another agent, runs on.
var runsOn = regexp.MustCompile(`session ID (\d+)|(background-[\w-]+)|"agent_id":"([^"]+)"`)

// next notes what a request says of earlier calls, and chooses the move that answers it.
func (m *model) next(q request) (now reply) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, text := range q.results {
		if m.saws[id] == text {
			continue
		}
		m.saws[id] = text
		if found := runsOn.FindStringSubmatch(text); found != nil {
			m.on = found[1]
			if name := found[2] + found[3]; name != "" {
				m.on = strconv.Quote(name)
			}
		}
	}
	for _, tool := range q.tools {
		m.tools[tool] = struct{}{}
	}
	sub := strings.Contains(q.prompt, subagent)
	if len(q.tools) == 0 || len(m.moves[sub]) == 0 { // without tools it is one of another kind, such as for a title
		return now
	}
	now = reply{m.moves[sub][0], "toolu_" + rand.Text(), m.on}
	m.moves[sub], m.ids[sub] = m.moves[sub][1:], append(m.ids[sub], now.id)
	return now
}

func (r reply) arguments() string {
	text, _ := json.Marshal(r.args)
	return strings.ReplaceAll(string(text), `"$"`, r.on)
}

// readable is a content, which is a text or a list of parts.
func readable(content json.RawMessage) (text string) {
	var parts []struct{ Type, Text string }
	if json.Unmarshal(content, &text) != nil {
		text = ""
		_ = json.Unmarshal(content, &parts)
	}
	for _, p := range parts {
		if text += p.Text; p.Text == "" {
			text += p.Type // such as an image
		}
	}
	text, _, _ = strings.Cut(text, "\n\n<system-reminder>")
	return text
}

// events begins a stream of events.
func events(w http.ResponseWriter) (send func(kind string, fields map[string]any)) {
	w.Header().Set("Content-Type", "text/event-stream")
	return func(kind string, fields map[string]any) {
		fields["type"] = kind
		text, _ := json.Marshal(fields)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, text)
	}
}

func readResponses(body []byte) request {
	var q struct {
		Input []struct {
			Type, Role      string
			CallID          string `json:"call_id"`
			Content, Output json.RawMessage
		}
		Tools []struct{ Name, Type string }
	}
	_ = json.Unmarshal(body, &q)
	r := request{results: map[string]string{}}
	for _, item := range q.Input {
		if strings.HasSuffix(item.Type, "_output") {
			r.results[item.CallID] = readable(item.Output)
		}
		if item.Role == "user" {
			r.prompt += readable(item.Content)
		}
	}
	for _, tool := range q.Tools {
		r.tools = append(r.tools, tool.Name+tool.Type)
	}
	return r
}

func writeResponses(w http.ResponseWriter, now reply) {
	send := events(w)
	item := map[string]any{"type": "message", "role": "assistant", "id": "m1", "content": []any{map[string]any{"type": "output_text", "text": "done"}}}
	if now.id != "" {
		item = map[string]any{"type": "function_call", "call_id": now.id, "name": now.tool, "arguments": now.arguments()}
		if group, name, ok := strings.Cut(now.tool, "."); ok {
			item["namespace"], item["name"] = group, name
		}
	}
	send("response.created", map[string]any{"response": map[string]any{"id": "r"}})
	send("response.output_item.done", map[string]any{"item": item})
	usage := map[string]any{"input_tokens": 1, "input_tokens_details": nil, "output_tokens": 1, "output_tokens_details": nil, "total_tokens": 2}
	send("response.completed", map[string]any{"response": map[string]any{"id": "r", "usage": usage}})
}

func readMessages(body []byte) request {
	var q struct {
		Tools    []struct{ Name string }
		Messages []struct{ Content json.RawMessage }
	}
	_ = json.Unmarshal(body, &q)
	r := request{results: map[string]string{}}
	for i, message := range q.Messages {
		var parts []struct {
			Type      string
			ToolUseID string `json:"tool_use_id"`
			Content   json.RawMessage
		}
		_ = json.Unmarshal(message.Content, &parts) // else it is a text
		for _, p := range parts {
			if p.Type == "tool_result" {
				r.results[p.ToolUseID] = readable(p.Content)
			}
		}
		if i == 0 {
			r.prompt = string(message.Content)
		}
	}
	for _, tool := range q.Tools {
		r.tools = append(r.tools, tool.Name)
	}
	return r
}

func writeMessages(w http.ResponseWriter, now reply) {
	send := events(w)
	block, delta, why := map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": "done"}, "end_turn"
	if now.id != "" {
		block, why = map[string]any{"type": "tool_use", "id": now.id, "name": now.tool, "input": map[string]any{}}, "tool_use"
		delta = map[string]any{"type": "input_json_delta", "partial_json": now.arguments()}
	}
	send("message_start", map[string]any{"message": map[string]any{
		"id": "m1", "type": "message", "role": "assistant", "model": "scripted", "content": []any{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": map[string]any{"input_tokens": 1, "output_tokens": 1},
	}})
	send("content_block_start", map[string]any{"index": 0, "content_block": block})
	send("content_block_delta", map[string]any{"index": 0, "delta": delta})
	send("content_block_stop", map[string]any{"index": 0})
	send("message_delta", map[string]any{"delta": map[string]any{"stop_reason": why, "stop_sequence": nil}, "usage": map[string]any{"output_tokens": 1}})
	send("message_stop", map[string]any{})
}

func readChat(body []byte) request {
	var q struct {
		Messages []struct {
			Role    string
			CallID  string `json:"tool_call_id"`
			Content json.RawMessage
		}
		Tools []struct{ Function struct{ Name string } }
	}
	_ = json.Unmarshal(body, &q)
	r := request{results: map[string]string{}}
	for _, m := range q.Messages {
		switch {
		case m.Role == "tool":
			r.results[m.CallID] = readable(m.Content)
		case m.Role == "user" && r.prompt == "":
			r.prompt = readable(m.Content)
		}
	}
	for _, tool := range q.Tools {
		r.tools = append(r.tools, tool.Function.Name)
	}
	return r
}

func writeChat(w http.ResponseWriter, now reply) {
	w.Header().Set("Content-Type", "text/event-stream")
	delta, why := map[string]any{"role": "assistant", "content": "done"}, "stop"
	if now.id != "" {
		why = "tool_calls"
		delta = map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
			"index": 0, "id": now.id, "type": "function", "function": map[string]any{"name": now.tool, "arguments": now.arguments()},
		}}}
	}
	for _, choice := range []map[string]any{{"index": 0, "delta": delta, "finish_reason": nil}, {"index": 0, "delta": map[string]any{}, "finish_reason": why}} {
		text, _ := json.Marshal(map[string]any{"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "fake-model", "choices": []any{choice}})
		fmt.Fprintf(w, "data: %s\n\n", text)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}
