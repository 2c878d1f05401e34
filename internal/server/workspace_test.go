package server

import (
	"context"
	"strings"
	"testing"

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
	} {
		must(t, conn.WriteMessage(1, []byte(step.send)))
		for found := false; !found; {
			_, frame, err := conn.ReadMessage()
			must(t, err)
			found = strings.Contains(string(frame), step.want)
			if !found && !strings.Contains(string(frame), `"message_type":"tool_`) {
				t.Fatalf("%s: %s, want %s", step.send, frame, step.want)
			}
		}
	}
}
