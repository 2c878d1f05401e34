//go:build linux

package conformance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// newChatModel serves the chat API of OpenAI, as LM Studio has it, on loopback until the test
// ends. A message of the user that is "CALL " and a JSON array is answered by these calls of
// tools, and their results, or anything else, by "done".
func newChatModel(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(serveChat))
	t.Cleanup(s.Close)
	return s
}

type chatMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// text is the content, which is a string or a list of parts.
func (m chatMessage) text() string {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return text
	}
	var parts []struct{ Text string }
	json.Unmarshal(m.Content, &parts)
	for _, p := range parts {
		text += p.Text
	}
	return text
}

func serveChat(w http.ResponseWriter, r *http.Request) {
	const about = `{"id":"fake-model","key":"fake-model","object":"model","type":"llm","state":"loaded","max_context_length":100000,"loaded_context_length":100000,"display_name":"fake","loaded_instances":[{"id":"fake-model","config":{"context_length":100000}}]}`
	if strings.Contains(r.URL.Path, "/models") {
		fmt.Fprintf(w, `{"object":"list","data":[%s],"models":[%s]}`, about, about)
		return
	}
	var q struct{ Messages []chatMessage }
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var calls []struct {
		ID   string         `json:"id"`
		Name string         `json:"name"`
		Args map[string]any `json:"args"`
	}
	for _, m := range q.Messages {
		switch m.Role {
		case "user":
			calls = nil
			if _, list, found := strings.Cut(m.text(), "CALL "); found {
				json.NewDecoder(strings.NewReader(list)).Decode(&calls)
			}
		case "tool":
			calls = nil
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(delta map[string]any, reason any) {
		text, _ := json.Marshal(map[string]any{
			"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "fake-model",
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": reason}},
		})
		fmt.Fprintf(w, "data: %s\n\n", text)
	}
	reason := "stop"
	if len(calls) == 0 {
		send(map[string]any{"role": "assistant", "content": "done"}, nil)
	}
	for i, c := range calls {
		reason = "tool_calls"
		text, _ := json.Marshal(c.Args)
		send(map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
			"index": i, "id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": string(text)},
		}}}, nil)
	}
	send(map[string]any{}, reason)
	fmt.Fprint(w, "data: [DONE]\n\n")
}
