package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toold/toold/client"
	"github.com/toold/toold/message"
)

// A question is a call that awaits approval. It is answered on its page if person is nil.
type question struct {
	message.ApprovalRequest
	person *client.Client
}

// openQuestions passes on the question until ctx ends. It connects before the call is made: approvers who join later
// are not asked. If the client cannot ask its user, or no token may answer, others are asked.
func (c *call) openQuestions(ctx context.Context) {
	if !c.form && !c.url {
		return
	}
	mine := func(r message.ApprovalRequest) bool { return r.CallID == c.ID && r.AgentID == c.AgentID }
	pass := func(q *question) {
		select {
		case c.asked <- q:
		default: // passed on before
		}
	}
	person, err := c.server.link.Get(ctx, "approver")
	switch {
	case err == nil:
		c.questions.Go(func() {
			person.Approvals(ctx, client.ApprovalEvents{Requested: func(r message.ApprovalRequest) {
				if mine(r) {
					pass(&question{r, person})
				}
			}})
		})
	case c.url && c.server.joinFor != nil:
		leave := c.server.joinFor(
			func(r message.ApprovalRequest) bool { return mine(r) && r.Client == c.server.caller.Token },
			func(r message.ApprovalRequest) { pass(&question{ApprovalRequest: r}) },
		)
		c.questions.Go(func() {
			<-ctx.Done()
			leave()
		})
	}
}

// asks reports whether a client can show a form to its user, or send the user to a page.
func asks(s *mcp.ServerSession) (form, url bool) {
	p := s.InitializeParams()
	if p == nil || p.Capabilities == nil || p.Capabilities.Elicitation == nil {
		return false, false
	}
	e := p.Capabilities.Elicitation
	return e.Form != nil || e.URL == nil, e.URL != nil // neither: before there were URLs
}

const (
	approvalKey  = "approval" // of the one input request
	allowOnce    = "allow once"
	allowSession = "allow in this conversation"
	deny         = "deny"
)

// ask returns the result that makes the client ask its user; nil if the call has ended.
func (c *call) ask(ctx context.Context, q *question, s *mcp.ServerSession) *mcp.CallToolResult {
	key := rand.Text()
	if !c.server.calls.hold(key, waiting{c, q}) {
		return nil // answered elsewhere, or timed out
	}
	if !repeats(s) {
		// The request lasts until it is answered; cancelling it cancels the call.
		context.AfterFunc(ctx, func() {
			if _, waits := c.server.calls.take(key); waits {
				c.cancel("the client has cancelled it")
			}
		})
	}
	question := &mcp.ElicitParams{Mode: "form", Message: c.server.options.Question(q.ApprovalRequest), RequestedSchema: c.server.form(q.ApprovalRequest)}
	if c.atPage(q) {
		question.Mode, question.RequestedSchema = "url", nil
		question.URL, question.ElicitationID = c.server.options.Page(q.ApprovalRequest.ID), key
		c.page.Store(key)
	}
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{approvalKey: question}, RequestState: key}
}

// atPage reports whether the question is answered on its page: the token may not decide, or the client shows no forms.
func (c *call) atPage(q *question) bool {
	byForm := q.person != nil && c.form
	return c.url && c.server.options.Page != nil && !byForm
}

func (c *call) notifyComplete(ctx context.Context, s *mcp.ServerSession) {
	if key, _ := c.page.Load().(string); key != "" && !repeats(s) {
		_ = s.NotifyElicitationComplete(ctx, &mcp.ElicitationCompleteParams{ElicitationID: key})
	}
}

// requestsAlone is the first version of the protocol without sessions.
const requestsAlone = "2026-07-28"

// repeats reports whether the client sends its request again with the answer.
func repeats(s *mcp.ServerSession) bool {
	p := s.InitializeParams()
	return p == nil || p.ProtocolVersion >= requestsAlone
}

// form is what the user fills in. Requests that several programs share have no conversation.
func (s *server) form(r message.ApprovalRequest) json.RawMessage {
	choices := []string{allowOnce, deny}
	if !s.shared && r.Remembers("conversation") {
		choices = []string{allowOnce, allowSession, deny}
	}
	text, _ := json.Marshal(map[string]any{
		"type": "object", "required": []string{"decision"},
		"properties": map[string]any{
			"decision": map[string]any{"type": "string", "title": "Decision", "enum": choices},
			"reason":   map[string]any{"type": "string", "title": "Reason, for the agent"},
		},
	})
	return text
}

// resumed passes the user's answer on and returns the call, or nil for a new one. A key is valid once, for the same
// call.
func (s *server) resumed(ctx context.Context, req *mcp.CallToolRequest) (*call, error) {
	if req.Params.RequestState == "" {
		return nil, nil
	}
	w, ok := s.calls.take(req.Params.RequestState)
	if !ok {
		return nil, errors.New("no call waits for this answer any more: it was answered elsewhere, or its time was over; what became of it is in the record (toold log). Nothing ran again")
	}
	if asked, _ := w.Arguments.(json.RawMessage); req.Params.Name != w.Tool || !bytes.Equal(arguments(req.Params), asked) {
		w.answer(ctx, client.Decision{Reason: "the client repeated another call than the one that was asked about"})
		return nil, errors.New("this answer is for another call; nothing ran")
	}
	given, _ := req.Params.InputResponses[approvalKey].(*mcp.ElicitResult)
	switch {
	case !w.atPage(w.question):
		w.answer(ctx, decision(given))
	case given == nil || given.Action != "accept":
		w.cancel("the user did not go to the page of the question")
	} // the answer comes from the page
	return w.call, nil
}

// decision takes anything but a clear yes for a no.
func decision(given *mcp.ElicitResult) client.Decision {
	d := client.Decision{Reason: "the question was dismissed"}
	if given == nil || given.Action == "cancel" {
		return d
	}
	d.Reason, _ = given.Content["reason"].(string)
	choice, _ := given.Content["decision"].(string)
	if given.Action == "accept" && (choice == allowOnce || choice == allowSession) {
		d.Approve = true
		if choice == allowSession {
			d.Remember = "conversation"
		}
	}
	return d
}

// answer passes the decision on. If that fails, the call waits for other people, or for its deadline.
func (w waiting) answer(ctx context.Context, d client.Decision) {
	if w.person == nil {
		w.cancel(d.Reason)
		return
	}
	d.ApprovalID = w.ApprovalRequest.ID
	within, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	_, err := w.person.Decide(within, d)
	if refused, ok := errors.AsType[*message.Error](err); ok {
		w.now.Store(refused.Message)
	} else if err != nil {
		w.now.Store("the answer may not have arrived: " + err.Error())
	}
}
