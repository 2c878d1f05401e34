package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
	"github.com/toold/toold/tools"
)

// safely recovers from a panic in act, and answers with an error.
func (ss *session) safely(callID string, act func()) {
	defer func() {
		if p := recover(); p != nil {
			ref := message.NewID("fault")
			ss.srv.opt.Log.Error("a frame panicked", zap.String("conn", ss.id), zap.String("reference", ref), zap.Any("panic", p), zap.Stack("stack"))
			ss.refuse(message.InternalError, callID, "a fault in toold; report it with the reference "+ref)
		}
	}()
	act()
}

func (ss *session) handle(m message.Inbound) {
	switch m := m.(type) {
	case *message.Request:
		ss.requestAll(m)
	case *message.ApprovalResponse:
		ss.answer(m)
	case *message.Cancel:
		ss.cancel(m)
	case *message.ToolInput:
		ss.input(m)
	case *message.Hello:
		ss.hello(m)
	case *message.Ping:
		ss.reply(m.Answer())
	case *message.ListApprovals:
		ss.listApprovals(m)
	case *message.ListCalls:
		ss.listCalls(m)
	case *message.ListMessages:
		ss.listMessages(m)
	case *message.GetOutput:
		ss.getOutput(m)
	case *message.ExplainPolicy:
		ss.explain(m)
	case *message.Subscribe:
		ss.subscribe(m)
	case *message.Unsubscribe:
		ss.unsubscribe(m)
	default:
		ss.refuse(message.UnsupportedFrame, "", "this message is understood but not served")
	}
}

func (ss *session) requestAll(m *message.Request) {
	if m.Item != "" {
		ss.safely(m.Item, func() { ss.requestItem(m) })
		return
	}
	for _, call := range m.Calls {
		ss.safely(call.ID, func() { ss.request(m, call) })
	}
}

func (ss *session) refuse(t message.ErrorType, callID, text string) {
	e := t.Errorf("%s", text)
	e.CallID = callID
	ss.reply(e)
}

func (ss *session) may(what, callID string, roles ...Role) bool {
	if slices.ContainsFunc(roles, ss.token.has) {
		return true
	}
	ss.refuse(message.NotAuthorized, callID, "the token "+ss.token.Name+" may not "+what+"; it needs the role "+string(roles[0]))
	return false
}

// client returns the client whose calls the session may see, "" for all.
func (ss *session) client() string {
	if ss.token.has(Observer) {
		return ""
	}
	return ss.stoppable()
}

// stoppable returns the client whose calls the session may stop and send input to, "" for all.
func (ss *session) stoppable() string {
	if ss.token.decides() {
		return ""
	}
	return ss.token.Name
}

func (ss *session) request(m *message.Request, call message.ToolCall) {
	if !ss.may("request calls", call.ID, Agent) {
		return
	}
	sub := ss.submission(m)
	sub.Call = call
	ss.followFrom(ss.srv.opt.Dispatch.Submit(sub), position{}, func(f *feed) { f.asks(m) })
}

func (ss *session) submission(m *message.Request) dispatch.Submission {
	sub := dispatch.Submission{Client: ss.token.Name, Conn: ss.id, Program: ss.program, Dir: ss.dir, Request: m, Keep: ss.conn.RemoteAddr().Network() != "pipe", Wake: ss.poke}
	if open, most := ss.awaitRoom(), ss.srv.opt.CallsPerConnection; open >= most {
		sub.TooMany = fmt.Sprintf("%d calls of this connection are unanswered", most)
	}
	return sub
}

func (ss *session) answer(m *message.ApprovalResponse) {
	for _, a := range m.Answers {
		if !ss.may("decide on calls", a.CallID, Approver, Admin) {
			continue
		}
		if e := ss.decide(a, m); e != nil {
			e.CallID = a.CallID
			ss.reply(e)
		}
	}
}

func (ss *session) decide(a message.ApprovalAnswer, m *message.ApprovalResponse) *message.Error {
	id, refused := ss.srv.question(a)
	if refused != nil {
		return refused
	}
	verdict := approval.Verdict{
		Approve: a.Approve, By: ss.token.Name, Conn: ss.id, RequestID: m.RequestID, Before: m.Beforehand, Reason: a.Reason, Escalation: approval.Escalation(a.Widen),
		Remember: m.Remember, Pattern: m.Pattern, Arguments: string(a.Arguments),
	}
	err := ss.srv.opt.Approvals.Resolve(id, verdict)
	_, answered := errors.AsType[*approval.PartlyError](err)
	switch {
	case err == nil:
		return nil
	case answered:
		return message.InternalError.Errorf("the call is answered, and nothing is remembered: %v", err)
	case errors.Is(err, approval.ErrNotPending):
		return message.ApprovalNotPending.Errorf("no call waits under this id: it is answered already, expired, or unknown")
	}
	return message.InvalidArguments.Errorf("the answer does not count, and the call still waits: %v", err)
}

// question returns the id of the approval request that an answer names. A tool_call_id is accepted only if no other
// call has used it: agents choose these ids, and a late answer may be meant for another call.
func (s *Server) question(a message.ApprovalAnswer) (id string, refused *message.Error) {
	named := slices.DeleteFunc(s.opt.Approvals.Pending(), func(r approval.Request[message.ApprovalRequest]) bool {
		if a.CallID != "" {
			return r.CallID != a.CallID
		}
		return !(message.ApprovalRequest{ID: r.ID, CallID: r.CallID}).Named(a.ApprovalID)
	})
	if len(named) == 0 || named[0].ID == a.ApprovalID {
		return a.ApprovalID, nil
	}
	calls, err := s.opt.Journal.Select(context.Background(), journal.CallQuery{ID: named[0].CallID, Limit: 2})
	switch {
	case err != nil:
		return "", message.InternalError.Errorf("the record cannot be read, so the answer does not count: %v", err)
	case len(calls) > 1 || len(named) > 1:
		return "", message.InvalidArguments.Errorf("several calls have had the tool_call_id %q; answer with approval_request_id", named[0].CallID)
	}
	return named[0].ID, nil
}

// named returns the live calls with an id, of a client ("": any) and an agent (nil: any). If this connection follows
// some of them, it returns only those, because several agents may use one id.
func (ss *session) named(client, callID string, agent *string) []*dispatch.Call {
	if callID == "" {
		return nil
	}
	calls := slices.DeleteFunc(ss.srv.opt.Dispatch.Find(client, callID), func(c *dispatch.Call) bool {
		return agent != nil && c.Key().Agent != *agent
	})
	if slices.ContainsFunc(calls, ss.follows) {
		calls = slices.DeleteFunc(calls, func(c *dispatch.Call) bool { return !ss.follows(c) })
	}
	return calls
}

func (ss *session) cancel(m *message.Cancel) {
	if !ss.may("cancel calls", m.CallID, Agent, Approver, Admin) {
		return
	}
	if ss.stop(m) || m.All {
		return
	}
	why := ""
	if ss.token.has(Agent) && !strings.HasPrefix(m.CallID, message.BackgroundPrefix) &&
		ss.srv.opt.Dispatch.CancelEarly(context.Background(), ss.token.Name, m.AgentID, m.CallID) {
		why = "; if a call with it comes later, what has not run of it is answered as cancelled and does not run"
	}
	ss.refuse(message.NotRunning, m.CallID, "no call of yours with this tool_call_id is running; it has ended, or its id is unknown"+why)
}

func (ss *session) input(m *message.ToolInput) {
	if !ss.may("send input", m.CallID, Agent, Approver, Admin) {
		return
	}
	calls := ss.named(ss.stoppable(), m.CallID, m.AgentID)
	switch {
	case len(calls) == 0:
		ss.refuse(message.NotRunning, m.CallID, "no call of yours with this tool_call_id is running; it has ended, or its id is unknown")
		return
	case len(calls) > 1:
		ss.refuse(message.InvalidArguments, m.CallID, fmt.Sprintf("%d calls with this tool_call_id run, of several agents; add the agent_id of the one that is meant, or send the input on the connection that made the call", len(calls)))
		return
	}
	in := tools.Input{Data: m.Data, EOF: m.EOF, Signal: m.Signal, ToShell: m.Leader, Rows: m.Rows, Cols: m.Cols}
	if e := calls[0].Input(in, ss.taken(m)); e != nil {
		ss.reply(e)
	}
}

// taken returns a function that answers an input with a request_id: whether the command has read it. It does not
// block.
func (ss *session) taken(m *message.ToolInput) func(taken bool) {
	if m.RequestID == "" {
		return nil
	}
	return func(taken bool) {
		if taken {
			ss.out.push(m.Taken())
			return
		}
		e := message.NotRunning.Errorf("tool call %q ended, or closed its input, before it read this", m.CallID)
		e.RequestID, e.CallID = m.RequestID, m.CallID
		ss.out.push(e)
	}
}

func (ss *session) hello(m *message.Hello) {
	ss.program = nil
	if m.Client.Name != "" {
		ss.program = &message.Program{Name: m.Client.Name, Version: m.Client.Version}
	}
	ss.mu.Lock()
	ss.wants = map[string]output{"none": silent, "binary": binary}[m.Output]
	ss.mu.Unlock()
	ack, err := ss.srv.opt.Greet(cmp.Or(m.Workspace, ss.dir))
	if m.Workspace != "" {
		ss.dir = selected(ack, m.Workspace) // an unknown workspace must not let calls run in another
	}
	if err != nil {
		ss.refuse(message.InvalidArguments, "", err.Error())
		return
	}
	ack.MessageType, ack.ConnID = "hello_ack", ss.id
	goOn := func() {}
	if m.Resume != nil {
		then, known := ss.resume(m.Resume.ConnID, m.Resume.LastEventSeq)
		if ack.Resumed = &known; known {
			goOn = then
		}
	}
	for _, r := range ss.token.Roles {
		ack.Roles = append(ack.Roles, string(r))
	}
	ss.reply(ack)
	goOn()
}

type output int

const (
	deltas output = iota
	silent
	binary
)

func (ss *session) wanted() output {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.wants
}

func (ss *session) listApprovals(m *message.ListApprovals) {
	if !ss.may("see approvals", "", Approver, Observer, Admin) {
		return
	}
	list := []message.ApprovalRequest{}
	for _, r := range ss.srv.opt.Approvals.Pending() {
		list = append(list, r.Show)
	}
	ss.reply(m.Answer(list))
}

func (ss *session) explain(m *message.ExplainPolicy) {
	answer, e := ss.srv.opt.Dispatch.Explain(ss.token.Name, ss.dir, m.Call, ss.token.decides())
	answer.RequestID = m.RequestID
	ss.answered(answer, e)
}
