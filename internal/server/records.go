package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
)

func (ss *session) listMessages(m *message.ListMessages) {
	if !ss.may("read the journal", "", Agent, Observer, Approver, Admin) {
		return
	}
	page, e, _ := ss.srv.list(context.Background(), ss.client(), m)
	ss.answered(page, e)
}

// list reads a page of the journal: messages of a client, "" for all. unread is the error of a partial page, or nil.
func (s *Server) list(ctx context.Context, client string, m *message.ListMessages) (answer message.Messages, e *message.Error, unread error) {
	page, err := s.opt.Journal.List(ctx, journal.Query{
		Before: m.Before, After: m.After, Limit: m.Limit, Ascending: m.Order == "asc", Client: client,
		AgentID: m.AgentID, ConversationID: m.ConversationID, RunID: m.RunID, StepID: m.StepID,
		OTID: m.OTID, GroupID: m.GroupID, SenderID: m.SenderID, Workspace: m.Workspace, CallID: m.CallID, Status: m.Status, MessageTypes: m.MessageTypes,
	})
	switch {
	case errors.Is(err, journal.ErrNotFound):
		return answer, message.NotFound.Errorf("no message has the id of this cursor; take before and after from messages you have listed"), err
	case err != nil && len(page.Messages) == 0:
		return answer, message.InternalError.Errorf("the journal cannot be read: %v", err), err
	}
	answer = message.Messages{
		MessageType: "messages", RequestID: m.RequestID, Messages: []json.RawMessage{},
		HasMore: page.HasMore, NextBefore: page.NextBefore, NextAfter: page.NextAfter,
	}
	lost := err
	for _, row := range page.Messages {
		lost = cmp.Or(lost, row.Lost)
		answer.Messages = append(answer.Messages, message.Record(row.Body).Listed())
	}
	if lost != nil {
		answer.Lost = lost.Error()
	}
	return answer, nil, err
}

func (s *Server) serveHealth(w http.ResponseWriter, _ *http.Request, _ Token) {
	w.Write([]byte("ok\n"))
}

// serveReady reports whether calls can be accepted and recorded. The state of the team store is shown, but does not
// count.
func (s *Server) serveReady(w http.ResponseWriter, _ *http.Request, _ Token) {
	s.mu.Lock()
	closing := s.closing
	s.mu.Unlock()
	if closing {
		http.Error(w, "stopping", http.StatusServiceUnavailable)
		return
	}
	if err := s.opt.Journal.Ready(); err != nil {
		http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Write([]byte("ready\n"))
	if s.opt.Store == nil {
		return
	}
	if behind := s.opt.Store(); behind != "" {
		w.Write([]byte("the team store " + behind + "\n"))
	}
}

func (s *Server) serveMessages(w http.ResponseWriter, r *http.Request, token Token) {
	m, e := listFromQuery(r.URL.Query())
	if e != nil {
		writeJSON(w, http.StatusBadRequest, e)
		return
	}
	page, e, _ := s.list(r.Context(), (&session{token: token}).client(), m)
	if e != nil {
		writeJSON(w, statusOfError(e), e)
		return
	}
	writeJSON(w, http.StatusOK, page)
}

func listFromQuery(q url.Values) (*message.ListMessages, *message.Error) {
	fields := map[string]any{}
	for name, values := range q {
		switch value := values[0]; {
		case name == "message_type":
			return nil, message.InvalidArguments.Errorf("message_type is no filter; did you mean message_types?")
		case len(values) > 1:
			return nil, message.InvalidArguments.Errorf("%.80q is there twice; send it once", name)
		case name == "limit":
			fields[name] = json.Number(value)
		case name == "message_types":
			fields[name] = strings.Split(value, ",")
		default:
			fields[name] = value
		}
	}
	fields["message_type"] = "list_messages"
	frame, err := message.Encode(fields)
	if err != nil {
		return nil, message.InvalidArguments.Errorf("limit must be a number from 1 to 1000")
	}
	in, refused := (&message.Decoder{}).Decode(frame)
	if len(refused) > 0 {
		return nil, refused[0]
	}
	return in[0].(*message.ListMessages), nil
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := message.Encode(v)
	if err != nil {
		http.Error(w, "cannot encode the answer", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(body)
}

const historyBytes = 16 << 20

type problem struct {
	Detail string `json:"detail"`
}

// serveHistory lists messages like Letta's API: a JSON array, with message ids as cursors.
func serveHistory(of, order string) func(*Server, http.ResponseWriter, *http.Request, Token) {
	return func(s *Server, w http.ResponseWriter, r *http.Request, token Token) {
		m, e := historyQuery(r.URL.Query(), of, r.PathValue("id"), order)
		if e != nil {
			writeJSON(w, http.StatusUnprocessableEntity, problem{e.Message})
			return
		}
		list, e := s.history(r, token, m)
		if e != nil {
			writeJSON(w, statusOfError(e), problem{e.Message})
			return
		}
		writeJSON(w, http.StatusOK, list)
	}
}

func (s *Server) history(r *http.Request, token Token, m *message.ListMessages) (list []json.RawMessage, e *message.Error) {
	list = []json.RawMessage{}
	for size, left := 0, m.Limit; ; {
		m.Limit = left
		page, e, unread := s.list(r.Context(), (&session{token: token}).client(), m)
		if e == nil && unread != nil { // no field of the response can report it
			e = message.InternalError.Errorf("the journal cannot be read: %v", unread)
		}
		if e != nil {
			return nil, e
		}
		for _, listed := range page.Messages {
			list = append(list, message.Record(listed).History())
			size += len(listed)
		}
		left -= len(page.Messages)
		if !page.HasMore || left <= 0 || size > historyBytes {
			return list, nil
		}
		if m.Order == "asc" {
			m.After = page.NextAfter
		} else {
			m.Before = page.NextBefore
		}
	}
}

// historyQuery converts Letta's parameters to list_messages. It ignores parameters for messages that toold does not
// record.
func historyQuery(q url.Values, of, id, order string) (*message.ListMessages, *message.Error) {
	fields := url.Values{"order": {order}, "limit": {"100"}}
	for name, values := range q {
		switch value := values[0]; {
		case slices.Contains([]string{"include_err", "use_assistant_message", "assistant_message_tool_name", "assistant_message_tool_kwarg"}, name), value == "":
		case name == "include_return_message_types":
			fields["message_types"] = []string{strings.Join(values, ",")}
		case name == "conversation_id" && value == "default":
		case slices.Contains([]string{"before", "after", "limit", "order", "group_id", "conversation_id", "agent_id"}, name):
			fields[name] = values
		default:
			return nil, message.InvalidArguments.Errorf("%.80q is no parameter of this list", name)
		}
	}
	if of != "conversation_id" || id != "default" {
		fields[of] = []string{id}
	}
	return listFromQuery(fields)
}
