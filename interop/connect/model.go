package connect

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toold/toold/internal/loopback"
)

type call struct {
	Name      string
	Arguments fields
}

// model is a scripted model with the APIs of OpenAI (Responses, Chat Completions), Anthropic and Gemini. Each answer
// makes one call; the last one ends the turn. It records the results of the calls.
type model struct {
	url    string
	server *http.Server
	over   sync.WaitGroup
	calls  []call

	mu       sync.Mutex
	turn     int
	answered int               // results of Gemini in the current request
	seen     map[string]string // results by call id
}

func newModel(calls ...call) (*model, error) {
	l, err := loopback.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen for a scripted model: %w", err)
	}
	m := &model{url: "http://" + l.Addr().String(), calls: calls, seen: make(map[string]string)}
	m.server = &http.Server{Handler: m, ReadHeaderTimeout: time.Minute}
	// Ends with close.
	m.over.Go(func() { _ = m.server.Serve(l) })
	return m, nil
}

func (m *model) close() {
	_ = m.server.Close()
	m.over.Wait()
}

func (m *model) results() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]string, len(m.calls))
	for i := range list {
		list[i] = m.seen[callID(i+1)]
	}
	return list
}

func callID(n int) string { return fmt.Sprintf("toolu_proof_%d", n) }

const largest = 64 << 20

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Input, Messages, Contents, Tools []any // each API has some of them
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
	m.answered = 0
	m.look(slices.Concat(body.Input, body.Messages, body.Contents))
	turn := len(body.Tools) > 0 || strings.HasSuffix(r.URL.Path, "/responses")
	switch {
	case strings.HasSuffix(r.URL.Path, "/responses"):
		m.respond(events{w})
	case strings.HasSuffix(r.URL.Path, "/messages"):
		m.message(events{w}, turn)
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		m.complete(w, turn)
	case strings.HasSuffix(r.URL.Path, "/models"):
		const about = `{"id": "scripted", "key": "scripted", "object": "model", "type": "llm", "state": "loaded", "max_context_length": 100000}`
		fmt.Fprintf(w, `{"object": "list", "data": [%s], "models": [%s]}`, about, about)
	case strings.HasSuffix(r.URL.Path, "enerateContent"):
		m.generate(w, turn)
	default:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintln(w, `{"input_tokens": 1}`)
	}
}

// look records the results in a message. The keys depend on the API. Gemini has no ids, but keeps the order.
func (m *model) look(v any) {
	switch v := v.(type) {
	case []any:
		for _, part := range v {
			m.look(part)
		}
	case map[string]any:
		for id, result := range map[string]string{"call_id": "output", "tool_use_id": "content", "tool_call_id": "content"} {
			if id, ok := v[id].(string); ok && v[result] != nil {
				m.seen[id] = plain(v[result])
			}
		}
		if response, ok := v["functionResponse"].(map[string]any); ok {
			m.answered++
			m.seen[callID(m.answered)] = plain(response["response"])
		}
		m.look(v["content"])
		m.look(v["parts"])
	}
}

func plain(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	text, _ := json.Marshal(v)
	return string(text)
}

// next returns the call to make. A request without tools makes none.
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
