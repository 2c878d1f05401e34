package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/internal/workspaces"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

func TestAConnectionWorksInTheWorkspaceItNamesOrInNone(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Allow, func(context.Context, tools.IO) tools.Result { return tools.Result{} })
	conn := dialAs(t, ts, agentSecret)
	for _, step := range []struct{ send, want string }{
		{`{"message_type":"hello","workspace":"/src/app"}`, `"workspace":"/src/app"`},
		{`{"message_type":"hello"}`, `"workspace":"/src/app"`},
		{`{"message_type":"hello","workspace":"/unregistered"}`, "toold workspaces add /unregistered"},
		{`{"message_type":"approval_request_message","tool_call":{"tool_call_id":"c1","tool_name":"shout","arguments":"{}"}}`, "toold workspaces add /unregistered"},
		{`{"message_type":"explain_policy","request_id":"r1","call":{"name":"shout","arguments":{}}}`, "toold workspaces add /unregistered"},
		{`{"message_type":"hello","workspace":"/src/app"}`, `"workspace":"/src/app"`},
		{`{"message_type":"hello","workspace":"/src/app/link"}`, "toold workspaces add /unregistered"}, // where it leads
		{`{"message_type":"approval_request_message","tool_call":{"tool_call_id":"c2","tool_name":"shout","arguments":"{}"}}`, "toold workspaces add /unregistered"},
	} {
		must.Do(t, conn.WriteMessage(1, []byte(step.send)))
		for found := false; !found; {
			_, frame, err := conn.ReadMessage()
			must.Do(t, err)
			found = strings.Contains(string(frame), step.want)
			if !found && !strings.Contains(string(frame), `"message_type":"tool_`) {
				t.Fatalf("%s: %s, want %s", step.send, frame, step.want)
			}
		}
	}
}

func TestARepeatOutsideAllWorkspacesGetsItsReturn(t *testing.T) {
	t.Parallel()
	var removed atomic.Bool
	ts := newLimitedServer(t, policy.Allow, hello, func(*dispatch.Limits, *Options) {}, func(o *Options) {
		o.Greet = func(dir string) (message.HelloAck, error) {
			switch {
			case dir == "unreadable":
				return message.HelloAck{}, errors.New("the list of workspaces cannot be read")
			case removed.Load():
				return message.HelloAck{Workspace: dir}, &workspaces.UnregisteredError{Dir: dir}
			}
			return message.HelloAck{Workspace: "/nowhere"}, nil
		}
	})
	call := func(id string) string {
		return `{"tool_call_id":"` + id + `","tool_name":"shout","arguments":"{}"}`
	}
	one := func(id string) string {
		return `{"message_type":"approval_request_message","tool_call":` + call(id) + `}`
	}
	const at, unreadable = "/v1/calls?workspace=/unregistered", "/v1/calls?workspace=unreadable"
	if status, body := ask(t, ts, "POST", at, one("c1")); status != http.StatusOK || !strings.Contains(body, "hello") {
		t.Fatalf("%d %s", status, body)
	}
	removed.Store(true)
	for _, step := range []struct {
		path, body string
		status     int
		want       string
	}{
		{at, one("c1"), http.StatusOK, "hello"},
		{unreadable, one("c1"), http.StatusOK, "hello"},
		{at, one("c2"), http.StatusBadRequest, "toold workspaces add /unregistered; nothing ran"},
		{unreadable, one("c2"), http.StatusBadRequest, "cannot be read; nothing ran"},
		{at, `{"message_type":"approval_request_message","tool_calls":[` + call("c1") + "," + call("c3") + `]}`, http.StatusOK, "toold workspaces add /unregistered"},
		{"/v1/calls", one("c2"), http.StatusOK, "hello"}, // its id is as good as new
	} {
		if status, body := ask(t, ts, "POST", step.path, step.body); status != step.status || !strings.Contains(body, step.want) {
			t.Errorf("%s %s: %d %s, want %d %s", step.path, step.body, status, body, step.status, step.want)
		}
	}
}
