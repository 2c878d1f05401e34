package dispatch

import (
	"testing"

	"github.com/toold/toold/message"
	"github.com/toold/toold/sandbox/escalation"
)

func TestOnlyCallsOfOneConversationShareALoopback(t *testing.T) {
	t.Parallel()
	b := newBench(t, 0, &probe{})
	call := func(client, agent, conversation string) *Call {
		c, _ := b.newCall(Submission{Client: client, Request: &message.Request{Origin: message.Origin{AgentID: agent, ConversationID: conversation}}, Call: message.ToolCall{ID: "c1", Name: "probe"}})
		return c
	}
	background := call("agent", "a", "1")
	background.of = background
	if l, _, _ := b.loopback(call("agent", "a", "1")); l != nil {
		t.Error("there is something to reach before there is a background call")
	}
	own, lends, giveBack := b.loopback(background)
	if own == nil || lends != background.ID {
		t.Errorf("the background call lends as %q", lends)
	}
	if l, lends, _ := b.loopback(call("agent", "a", "1")); l != own || lends != "" {
		t.Errorf("a later call has %p, %q, want %p", l, lends, own)
	}
	granted, narrowed := call("agent", "a", "1"), call("agent", "a", "1")
	granted.escalation, narrowed.profile = &escalation.Escalation{}, "read-only"
	for name, c := range map[string]*Call{
		"another client": call("other", "a", "1"), "another agent": call("agent", "b", "1"), "another conversation": call("agent", "a", "2"),
		"no conversation": call("agent", "a", ""), "a call with a grant": granted, "a call in another sandbox": narrowed,
	} {
		if l, _, _ := b.loopback(c); l != nil {
			t.Errorf("%s shares it", name)
		}
	}
	giveBack()
	if l, _, _ := b.loopback(call("agent", "a", "1")); l != nil || len(b.lent) > 0 {
		t.Error("it outlives the background call")
	}
}
