package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

func TestACallWithAnIDThatNobodyCanSendIsRefused(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("i", 256)
	for name, c := range map[string]struct {
		id      string
		origin  message.Origin
		refused bool
	}{
		"the longest":              {long, message.Origin{AgentID: long, ConversationID: long}, false},
		"none":                     {"", message.Origin{}, true},
		"too long":                 {long + "i", message.Origin{}, true},
		"an unseen letter":         {"a\u3164", message.Origin{}, true},
		"an unseen agent":          {"a", message.Origin{AgentID: "a\ufe0f"}, true},
		"an unseen conversation":   {"a", message.Origin{ConversationID: "\u2800"}, true},
		"a line feed":              {"a\nb", message.Origin{}, true},
		"of a long agent":          {"a", message.Origin{AgentID: long + "i"}, true},
		"of a conversation's line": {"a", message.Origin{ConversationID: "\n"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, policy.Allow, &probe{run: func(context.Context, tools.IO) tools.Result { return tools.Result{} }})
			wake, woken := waker()
			w := b.Submit(Submission{Client: "agent", Request: &message.Request{Origin: c.origin}, Call: message.ToolCall{ID: c.id, Name: "probe", Arguments: json.RawMessage(`{}`)}, Wake: wake})
			f := final(t, w, woken)
			if refused := f.Err != nil && f.Err.Type == message.MissingToolCallID; refused != c.refused {
				t.Errorf("it got %+v", f)
			}
			if ran := b.tool.ran.Load() > 0; ran == c.refused {
				t.Errorf("it ran: %v", ran)
			}
		})
	}
}

func TestACallIsListedByItsIDHoweverManyHaveEndedSince(t *testing.T) {
	t.Parallel()
	b := newBench(t, policy.Allow, &probe{})
	for i := range endedShown + 5 {
		b.call(t, fmt.Sprint("call_", i), `{}`)
	}
	list, err := b.List(t.Context(), "agent", "call_0", true)
	if err != nil || len(list) != 1 || list[0].CallID != "call_0" {
		t.Errorf("listed are %+v, %v", list, err)
	}
	if list, err = b.List(t.Context(), "another", "call_0", true); err != nil || len(list) > 0 {
		t.Errorf("another client is shown %+v, %v", list, err)
	}
}
