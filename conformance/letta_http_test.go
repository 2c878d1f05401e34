//go:build linux

package conformance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toold/toold/client"
	"github.com/toold/toold/message"
)

// oldServer is a server of Letta's older protocol as far as it concerns the answers to calls:
// it takes exactly those that wait, once, from a client that offers its tools again.
type oldServer struct {
	*testing.T
	*httptest.Server
	answers chan []any // each batch that was taken

	mu       sync.Mutex
	waiting  []any            // ids
	messages []map[string]any // the newest first
}

func newOldServer(t *testing.T) *oldServer {
	t.Helper()
	s := &oldServer{T: t, answers: make(chan []any, 8)}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *oldServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.Header.Get("Authorization") != "Bearer s3cret":
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == "/v1/agents/":
		fmt.Fprint(w, `[{"id":"agent-1","name":"one"}]`)
	case r.Method == http.MethodGet && r.URL.Path == "/v1/agents/agent-1/messages" && r.URL.Query().Get("order") == "desc":
		json.NewEncoder(w).Encode(append([]map[string]any{}, s.messages...))
	case r.URL.Path == "/v1/conversations/default/stream":
		http.Error(w, `{"detail":"No active runs found for this conversation."}`, http.StatusBadRequest)
	case r.Method == http.MethodPost && r.URL.Path == "/v1/agents/agent-1/messages":
		s.take(w, r)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// take takes the answers to a batch, and ends the turn.
func (s *oldServer) take(w http.ResponseWriter, r *http.Request) {
	var body map[string]any
	json.NewDecoder(r.Body).Decode(&body)
	tools, _ := body["client_tools"].([]any)
	ids := answeredBy(body)
	switch {
	case len(tools) == 0:
		s.Errorf("the answer offers no tools")
	case len(s.waiting) == 0:
		http.Error(w, `{"detail":"Cannot process approval response: No tool call is currently awaiting approval."}`, http.StatusBadRequest)
		return
	case !slices.Equal(ids, s.waiting):
		s.Errorf("%v wait and %v are answered", s.waiting, ids)
	}
	list, _ := lookup("messages.0.approvals", body)
	s.answers <- list.([]any)
	s.settle("approval_response_message", list)
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, "data: {\"message_type\":\"stop_reason\",\"stop_reason\":\"end_turn\"}\n\ndata: [DONE]\n\n")
}

func (s *oldServer) settle(kind string, approvals any) {
	s.waiting = nil
	s.messages = slices.Insert(s.messages, 0, map[string]any{"message_type": kind, "approvals": approvals})
}

// wants has the model make a call of bash.
func (s *oldServer) wants(id, command string) {
	arguments, _ := json.Marshal(map[string]any{"command": command})
	call := map[string]any{"name": "bash", "tool_call_id": id, "arguments": string(arguments)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = []any{id}
	s.messages = slices.Insert(s.messages, 0, map[string]any{"message_type": "approval_request_message", "id": "message-" + id, "tool_call": call, "tool_calls": []any{call}})
}

// cancel ends the turn, as for a user.
func (s *oldServer) cancel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle("approval_response_message", []any{map[string]any{"type": "approval", "tool_call_id": s.waiting[0], "approve": false}})
}

// next is the next answer, which is one of one call.
func (s *oldServer) next() string {
	s.Helper()
	text, _ := json.Marshal((<-s.answers)[0])
	return string(text)
}

// What waits on a server of the older protocol is answered once, whoever is killed meanwhile.
func TestCallsOfTheOlderServerOfLettaAreAnsweredOnce(t *testing.T) {
	t.Parallel()
	bin := daemonOrSkip(t)
	site := newCarefulSite(t, bin)
	server := newOldServer(t)
	token := filepath.Join(site.site.home, "token")
	if err := os.WriteFile(token, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	begin := func() *exec.Cmd {
		cmd := exec.Command(bin, "letta", "--url", server.URL, "--token-file", token, "-C", site.site.workspace, "--state-dir", site.site.state, "--config", site.site.config)
		cmd.Env = []string{"HOME=" + site.site.home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
		startProgram(t, cmd)
		return cmd
	}
	file := func(name string) string { return filepath.Join(site.site.workspace, name) }
	exists := func(name string) func() bool {
		return func() bool { _, err := os.Stat(file(name)); return err == nil }
	}
	server.wants("c1", "echo before; exit 3")
	bridge := begin()
	if got := server.next(); !strings.Contains(got, "before") || !strings.Contains(got, `"error"`) {
		t.Errorf("what waited is answered with %s", got)
	}

	server.wants("c2", "echo x >>ran; until test -e go; do sleep 0.1; done; echo over")
	eventually(t, "the call runs", exists("ran"))
	bridge.Process.Kill()
	begin()
	if err := os.WriteFile(file("go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := server.next(); !strings.Contains(got, "over") {
		t.Errorf("after toold letta was killed the call is answered with %s", got)
	}
	if text, _ := os.ReadFile(file("ran")); string(text) != "x\n" {
		t.Errorf("the call ran more than once: %q", text)
	}

	person, err := client.Dial(t.Context(), client.Options{URL: site.daemon.ws, Token: site.daemon.tokens["approver"]})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close() })
	server.wants("c3", "touch begun; sleep 1000")
	eventually(t, "the call runs", exists("begun"))
	server.cancel()
	eventually(t, "the call of a cancelled run ends", func() bool {
		calls, err := person.ListCalls(t.Context(), "", false)
		return err == nil && len(calls) == 0
	})

	asked := make(chan message.ApprovalRequest, 8)
	go person.Approvals(t.Context(), client.ApprovalEvents{Requested: func(r message.ApprovalRequest) { asked <- r }})
	if err := person.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.wants("c4", "git push")
	if _, err := person.Decide(t.Context(), client.Decision{ApprovalID: (<-asked).ID, Reason: "not today"}); err != nil {
		t.Fatal(err)
	}
	if got := server.next(); !strings.Contains(got, `"approve":false`) || !strings.Contains(got, "not today") {
		t.Errorf("a denied call is answered with %s", got)
	}
}
