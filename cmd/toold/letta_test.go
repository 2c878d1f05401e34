package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptedLetta is a server of Letta's older protocol. Its model makes the call of bash that
// the file wanted has, ID COMMAND; the file answer-ID gets the answer.
type scriptedLetta struct {
	dir string

	mu       sync.Mutex
	answered string // id of the latest call
}

// startLetta starts one, with TLS and without: LETTA, LETTA_TLS and LETTA_WS are its
// addresses, letta.pem is its certificate.
func startLetta(ts *testscript.TestScript, _ bool, _ []string) {
	s := &scriptedLetta{dir: ts.Getenv("WORK")}
	plain, secure := httptest.NewServer(s), httptest.NewTLSServer(s)
	ts.Defer(plain.Close)
	ts.Defer(secure.Close)
	ts.Setenv("LETTA", plain.URL)
	ts.Setenv("LETTA_TLS", secure.URL)
	ts.Setenv("LETTA_WS", "ws"+strings.TrimPrefix(plain.URL, "http"))
	ts.Check(os.WriteFile(filepath.Join(s.dir, "letta.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600))
}

func (s *scriptedLetta) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted, _ := os.ReadFile(filepath.Join(s.dir, "wanted"))
	id, command, _ := strings.Cut(strings.TrimSpace(string(wanted)), " ")
	switch {
	case r.Header.Get("Authorization") != "Bearer s3cret":
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == "/v1/agents/":
		fmt.Fprint(w, `[{"id":"agent-1","name":"one"}]`)
	case r.URL.Path != "/v1/agents/agent-1/messages":
		http.Error(w, "no run is active", http.StatusBadRequest)
	case r.Method == http.MethodPost:
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte(`"tool_call_id":"`+id+`"`)) {
			s.answered = id
			s.note("answer-"+id, body)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"message_type\":\"stop_reason\",\"stop_reason\":\"end_turn\"}\n\ndata: [DONE]\n\n")
	case id == "" || id == s.answered:
		fmt.Fprint(w, `[]`)
	default:
		fmt.Fprintf(w, `[{"message_type":"approval_request_message","id":"message-1","tool_call":{"name":"bash","tool_call_id":%q,"arguments":%q}}]`, id, fmt.Sprintf(`{"command":%q}`, command))
	}
}

// note makes a file that is whole when it appears, since the script looks for it.
func (s *scriptedLetta) note(name string, text []byte) {
	path := filepath.Join(s.dir, name)
	if os.WriteFile(path+".new", text, 0o600) == nil {
		_ = os.Rename(path+".new", path)
	}
}
