package letta

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/toold/toold/client"
	"github.com/toold/toold/interop/hook"
	"github.com/toold/toold/message"
)

// maxText is the maximum size of a result in UTF-16 units, beyond which the server cuts it.
const maxText = 32000

func (b *bridge) execute(ctx context.Context, c *connection, f frame) {
	o, _ := b.perform(ctx, client.Call{ID: f.CallID, Tool: f.ToolName, Arguments: f.Input}, time.After(b.AnswerAfter))
	if o.text == "" {
		o.text = "(no output)"
	}
	// If sending fails, the result is still in the journal.
	c.send(fields{"type": "external_tool_call_response", "request_id": f.RequestID, "result": fields{
		"content": []fields{{"type": "text", "text": shortened(o.text)}}, "is_error": !o.ok,
	}})
}

type outcome struct {
	text   string
	ok     bool // it ran without an error
	denied bool
}

// perform lets the daemon run a call, and stops it when ctx ends. When late fires, only perform ends.
func (b *bridge) perform(ctx context.Context, call client.Call, late <-chan time.Time) (outcome, message.ToolReturn) {
	of := b.runtime()
	call.AgentID, call.ConversationID = of.Agent, of.Conversation
	type end struct {
		ret message.ToolReturn
		err error
	}
	ended := make(chan end, 1)
	// Ends with the call, or with the connection to the daemon.
	b.calls.Go(func() {
		ret, err := b.daemon.Call(context.Background(), b.directory(), call, func() client.Events { return client.Events{} })
		ended <- end{ret, err}
	})
	done := ctx.Done()
	for {
		select {
		case e := <-ended:
			if e.err != nil {
				return outcome{text: "Error: " + e.err.Error()}, e.ret
			}
			denied := e.ret.ErrorType != nil && *e.ret.ErrorType == message.Denied
			return outcome{e.ret.Result, e.ret.Status == "success", denied}, e.ret
		case <-late:
			return outcome{text: b.soFar(call), ok: true}, message.ToolReturn{}
		case <-done:
			done = nil
			b.stop(call.ID)
		}
	}
}

// judge lets the daemon decide on a call of the server's own tool.
func (b *bridge) judge(ctx context.Context, id, tool string, input json.RawMessage) outcome {
	of, dir := b.runtime(), b.directory()
	call := hook.Call{ID: id, Tool: tool, Dir: dir, Input: input, Agent: of.Agent, Session: of.Conversation}
	o, ret := b.perform(ctx, client.Call{ID: id, Tool: "judge", Arguments: hook.Arguments("letta", call)}, nil)
	if !o.ok {
		return o
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	agent, err := b.daemon.Get(ctx, dir)
	if err == nil {
		err = call.Own(ctx, agent, ret)
	}
	if err != nil {
		return outcome{text: err.Error()}
	}
	return o
}

func (b *bridge) soFar(call client.Call) string {
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	printed := ""
	if agent, err := b.daemon.Get(ctx, b.directory()); err == nil {
		if _, text, err := agent.GetOutput(ctx, message.GetOutput{CallID: call.ID, AgentID: &call.AgentID}); err == nil {
			printed = strings.ToValidUTF8(string(text), "\ufffd") + "\n"
		}
	}
	return printed + fmt.Sprintf("[The call is still running, or waits for a person, as %s. Read its output and state with bash_output, end it with bash_kill.]", call.ID)
}

func (b *bridge) stop(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	agent, err := b.daemon.Get(ctx, b.directory())
	if err == nil {
		agent.Stop(ctx, id, "the agent was interrupted")
	}
}

func shortened(text string) string {
	units := utf16.Encode([]rune(text))
	if len(units) <= maxText {
		return text
	}
	const kept = maxText/2 - 100
	head, tail := string(utf16.Decode(units[:kept])), string(utf16.Decode(units[len(units)-kept:]))
	notice := fmt.Sprintf("\n[%d characters are left out here; bash_output reads them]\n", len(units)-2*kept)
	return strings.ToValidUTF8(head+notice+tail, "")
}

// decide answers a permission request. It allows toold's tools, because the daemon decides when they are called.
func (b *bridge) decide(ctx context.Context, c *connection, f frame) {
	why := ""
	if !b.isOwn(f.Request.ToolName) {
		if o := b.judge(ctx, f.Request.CallID, f.Request.ToolName, f.Request.Input); !o.ok {
			why = cmp.Or(o.text, "toold denied it")
		}
	}
	if ctx.Err() != nil {
		return // already answered, or no longer needed
	}
	r, err := c.request(ctx, b.answer(f, why))
	if err == nil && r.Accepted != nil && !*r.Accepted {
		b.Say(fmt.Sprintf("%s (%s) was answered by another client before toold", f.Request.ToolName, f.Request.CallID))
	}
}

func (b *bridge) answer(f frame, why string) fields {
	decision := fields{"behavior": "allow"}
	if why != "" {
		decision = fields{"behavior": "deny", "message": why}
	}
	return fields{"type": "input", "runtime": b.runtime(), "payload": fields{
		"kind": "approval_response", "request_id": f.RequestID, "decision": decision,
	}}
}
