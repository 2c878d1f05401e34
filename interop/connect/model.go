package connect

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/toold/toold/internal/loopback"
)

type call struct {
	Name      string
	Arguments map[string]any
}

// model is a scripted model on loopback with the APIs of OpenAI (Responses, Chat Completions), Anthropic and Gemini. It
// plays one call an answer and records the results.
type model struct {
	url    string
	server *http.Server
	over   chan struct{}
	calls  []call

	mu   sync.Mutex
	turn int
	seen map[string]string // results by call id
}

func newModel(calls ...call) (*model, error) {
	l, err := loopback.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen for a scripted model: %w", err)
	}
	m := &model{url: "http://" + l.Addr().String(), calls: calls, seen: make(map[string]string), over: make(chan struct{})}
	m.server = &http.Server{Handler: m, ReadHeaderTimeout: time.Minute}
	// Ends with close.
	go func() {
		defer close(m.over)
		_ = m.server.Serve(l)
	}()
	return m, nil
}

func (m *model) close() {
	_ = m.server.Close()
	<-m.over
}

func (m *model) saw(n int) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen[callID(n)]
}

func callID(n int) string { return fmt.Sprintf("toolu_proof_%d", n) }

const largest = 64 << 20

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Input    []map[string]any
		Messages []struct {
			Role    string
			CallID  string `json:"tool_call_id"` // of chat completions
			Content any
		}
		Contents []content
		Tools    []any
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largest))
	if err == nil && len(text) > 0 {
		err = json.Unmarshal(text, &body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case strings.HasSuffix(r.URL.Path, "/responses"):
		for _, item := range body.Input {
			if kind, _ := item["type"].(string); strings.HasSuffix(kind, "_output") {
				m.seen[fmt.Sprint(item["call_id"])] = plain(item["output"])
			}
		}
		m.respond(events{w})
	case strings.HasSuffix(r.URL.Path, "/messages"):
		for _, message := range body.Messages {
			m.look(message.Content)
		}
		m.message(events{w}, len(body.Tools) > 0)
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		for _, message := range body.Messages {
			if message.Role == "tool" {
				m.seen[message.CallID] = plain(message.Content)
			}
		}
		m.complete(w, len(body.Tools) > 0)
	case strings.HasSuffix(r.URL.Path, "/models"):
		const about = `{"id": "scripted", "key": "scripted", "object": "model", "type": "llm", "state": "loaded", "max_context_length": 100000}`
		fmt.Fprintf(w, `{"object": "list", "data": [%s], "models": [%s]}`, about, about)
	case strings.HasSuffix(r.URL.Path, "enerateContent"):
		m.lookAt(body.Contents)
		m.generate(w, len(body.Tools) > 0)
	default:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintln(w, `{"input_tokens": 1}`)
	}
}

func (m *model) look(content any) {
	blocks, _ := content.([]any)
	for _, b := range blocks {
		block, _ := b.(map[string]any)
		if block["type"] == "tool_result" {
			m.seen[fmt.Sprint(block["tool_use_id"])] = plain(block["content"])
		}
	}
}

func plain(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	text, _ := json.Marshal(v)
	return string(text)
}

// next returns the call of this turn; ok is false when all were made. A request without tools is no turn.
func (m *model) next(turn bool) (id string, c call, ok bool) {
	if !turn || m.turn >= len(m.calls) {
		return "", c, false
	}
	m.turn++
	return callID(m.turn), m.calls[m.turn-1], true
}

type events struct{ http.ResponseWriter }

type fields map[string]any

func (e events) send(kind string, f fields) {
	f["type"] = kind
	fmt.Fprintf(e, "event: %s\ndata: %s\n\n", kind, plain(f))
}

func (m *model) respond(e events) {
	item := fields{"type": "message", "role": "assistant", "id": "m", "content": []any{fields{"type": "output_text", "text": "done"}}}
	if id, c, ok := m.next(true); ok {
		item = fields{"type": "function_call", "call_id": id, "name": c.Name, "arguments": plain(c.Arguments)}
	}
	e.Header().Set("Content-Type", "text/event-stream")
	e.send("response.created", fields{"response": fields{"id": "r"}})
	e.send("response.output_item.done", fields{"item": item})
	e.send("response.completed", fields{"response": fields{"id": "r", "usage": fields{
		"input_tokens": 1, "input_tokens_details": nil, "output_tokens": 1, "output_tokens_details": nil, "total_tokens": 2,
	}}})
}

func (m *model) message(e events, turn bool) {
	block, delta, reason := fields{"type": "text", "text": ""}, fields{"type": "text_delta", "text": "done"}, "end_turn"
	if id, c, ok := m.next(turn); ok {
		block = fields{"type": "tool_use", "id": id, "name": c.Name, "input": fields{}}
		delta, reason = fields{"type": "input_json_delta", "partial_json": plain(c.Arguments)}, "tool_use"
	}
	e.Header().Set("Content-Type", "text/event-stream")
	e.send("message_start", fields{"message": fields{
		"id": "m", "type": "message", "role": "assistant", "model": "scripted", "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": fields{"input_tokens": 1, "output_tokens": 1},
	}})
	e.send("content_block_start", fields{"index": 0, "content_block": block})
	e.send("content_block_delta", fields{"index": 0, "delta": delta})
	e.send("content_block_stop", fields{"index": 0})
	e.send("message_delta", fields{"delta": fields{"stop_reason": reason, "stop_sequence": nil}, "usage": fields{"output_tokens": 1}})
	e.send("message_stop", fields{})
}

func (m *model) complete(w http.ResponseWriter, turn bool) {
	delta, reason := fields{"role": "assistant", "content": "done"}, "stop"
	if id, c, ok := m.next(turn); ok {
		reason = "tool_calls"
		delta = fields{"role": "assistant", "content": nil, "tool_calls": []any{fields{
			"index": 0, "id": id, "type": "function", "function": fields{"name": c.Name, "arguments": plain(c.Arguments)},
		}}}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, choice := range []fields{{"index": 0, "delta": delta, "finish_reason": nil}, {"index": 0, "delta": fields{}, "finish_reason": reason}} {
		chunk := fields{"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "scripted", "choices": []any{choice}}
		fmt.Fprintf(w, "data: %s\n\n", plain(chunk))
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

type content struct {
	Parts []struct {
		FunctionResponse *struct{ Response any }
	}
}

// lookAt records the results in messages of Gemini, which has no call ids, by their order.
func (m *model) lookAt(list []content) {
	n := 0
	for _, c := range list {
		for _, p := range c.Parts {
			if p.FunctionResponse != nil {
				n++
				m.seen[callID(n)] = plain(p.FunctionResponse.Response)
			}
		}
	}
}

func (m *model) generate(w http.ResponseWriter, turn bool) {
	part := fields{"text": "done"}
	if _, c, ok := m.next(turn); ok {
		part = fields{"functionCall": fields{"name": c.Name, "args": c.Arguments}}
	}
	answer := fields{
		"candidates":    []any{fields{"index": 0, "finishReason": "STOP", "content": fields{"role": "model", "parts": []any{part}}}},
		"usageMetadata": fields{"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: %s\n\n", plain(answer))
}
