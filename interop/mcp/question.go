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

// A question is the approval request of a call. If person is nil, it is answered on its page.
type question struct {
	message.ApprovalRequest
	person *client.Client
}

// openQuestions passes the call's approval request to ask, until ctx ends. It must run before the call is made,
// because later approvers do not receive it. If the client cannot ask its user, or no token may answer, others decide.
func (c *call) openQuestions(ctx context.Context) {
	if !c.form && !c.url {
		return
	}
	// Other clients may use the same ids; nobody else knows the conversation.
	mine := func(r message.ApprovalRequest) bool {
		return r.ConversationID == c.ConversationID && r.CallID == c.ID && r.AgentID == c.AgentID
	}
	pass := func(q *question) {
		select {
		case c.asked <- q:
		default: // already passed
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

// asks reports whether a client can show a form to its user, or open a URL.
func asks(s *mcp.ServerSession) (form, url bool) {
	p := s.InitializeParams()
	if p == nil || p.Capabilities == nil || p.Capabilities.Elicitation == nil {
		return false, false
	}
	e := p.Capabilities.Elicitation
	return e.Form != nil || e.URL == nil, e.URL != nil // neither is set in versions before URLs
}

const (
	approvalKey  = "approval" // key of the only input request
	allowOnce    = "allow once"
	allowSession = "allow in this conversation"
	deny         = "deny"
)

// ask returns the result that makes the client ask its user, or nil if the call no longer waits.
func (c *call) ask(ctx context.Context, q *question, s *mcp.ServerSession) *mcp.CallToolResult {
	key := rand.Text()
	if !c.server.calls.hold(key, waiting{c, q}) {
		return nil // decided by others, or expired
	}
	if !repeats(s) {
		// The request lasts until it is answered. Its end cancels the call.
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

// atPage reports whether the user answers on a page: the token may not decide, or the client shows no forms.
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

// repeats reports whether the client repeats its request with the answer.
func repeats(s *mcp.ServerSession) bool {
	p := s.InitializeParams()
	return p == nil || p.ProtocolVersion >= requestsAlone
}

// form returns the schema of the form for an approval. Independent requests have no conversation to remember it in.
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

// resumed passes on the user's answer and returns the call, or nil for a new request. A key is valid once, and only
// for the same call.
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
	} // the page delivers the answer
	return w.call, nil
}

// decision returns a denial for anything but a clear approval.
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

// answer sends the decision to the daemon. If that fails, the call still awaits approval by others or its deadline.
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
