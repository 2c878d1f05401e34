package server

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
	"github.com/toold/toold/tools"
)

// outputBytes is how much of a call's output get_output returns when it is not
// told, and at most.
const outputBytes = 1 << 20

func (ss *session) listMessages(m *message.ListMessages) {
	if !ss.may("read the journal", m.RequestID, "", Agent, Observer, Approver, Admin) {
		return
	}
	page, e := ss.srv.list(context.Background(), ss.client(), m)
	if e != nil {
		ss.reply(e)
		return
	}
	ss.reply(page)
}

// list reads a page of the journal. An empty client sees all clients' messages.
func (s *Server) list(ctx context.Context, client string, m *message.ListMessages) (message.Messages, *message.Error) {
	page, err := s.opt.Journal.List(ctx, journal.Query{
		Before: m.Before, After: m.After, Limit: m.Limit, Ascending: m.Ascending, Client: client,
		AgentID: m.AgentID, ConversationID: m.ConversationID, RunID: m.RunID, StepID: m.StepID,
		OTID: m.OTID, CallID: m.CallID, Status: m.Status, MessageTypes: m.MessageTypes,
	})
	var e *message.Error
	switch {
	case errors.Is(err, journal.ErrNotFound):
		e = message.Errorf(message.NotFound, "no message has the id of this cursor; take before and after from messages you have listed")
	case err != nil:
		e = message.Errorf(message.InternalError, "the journal cannot be read: %v", err)
	}
	if e != nil {
		e.RequestID = m.RequestID
		return message.Messages{}, e
	}
	answer := message.Messages{
		MessageType: "messages", RequestID: m.RequestID, Messages: []json.RawMessage{},
		HasMore: page.HasMore, NextBefore: page.NextBefore, NextAfter: page.NextAfter,
	}
	for _, row := range page.Messages {
		answer.Messages = append(answer.Messages, row.Body)
	}
	return answer, nil
}

func (ss *session) getOutput(m *message.GetOutput) {
	if !ss.may("read output", m.RequestID, m.CallID, Agent, Observer, Approver, Admin) {
		return
	}
	read, e := ss.output(m)
	if e != nil {
		e.RequestID, e.CallID = m.RequestID, m.CallID
		ss.reply(e)
		return
	}
	most := outputBytes
	if m.Limit > 0 && m.Limit < outputBytes {
		most = int(m.Limit)
	}
	p, from, eof := read(stream(m.Stream), m.Offset, most)
	answer := message.Output{
		MessageType: "output", RequestID: m.RequestID, CallID: m.CallID, Stream: m.Stream,
		Offset: from, NextOffset: from + int64(len(p)), EOF: eof,
	}
	if utf8.Valid(p) {
		answer.Data = string(p)
	} else {
		answer.DataB64 = base64.StdEncoding.EncodeToString(p)
	}
	ss.reply(answer)
}

// reading is how recorded output is read: at most most bytes from an offset, or
// from the next later one that is kept.
type reading func(s tools.Stream, offset int64, most int) (p []byte, from int64, eof bool)

// output finds the output of a call: that of a running one in its capture, that
// of an ended one in its files.
func (ss *session) output(m *message.GetOutput) (reading, *message.Error) {
	for _, c := range ss.srv.opt.Dispatch.Find(ss.client(), m.CallID) {
		if capture := c.Capture(); capture != nil {
			return capture.ReadAt, nil
		}
	}
	rec, err := ss.record(m.CallID)
	if err != nil {
		return nil, message.Errorf(message.NotFound, "no call of yours has this tool_call_id")
	}
	if rec.SpoolDir == "" {
		return nil, message.Errorf(message.NotFound, "this call left no output")
	}
	spool, err := tools.OpenSpool(rec.SpoolDir)
	if err != nil {
		return nil, message.Errorf(message.NotFound, "the output of this call is not kept any more")
	}
	return func(s tools.Stream, offset int64, most int) ([]byte, int64, bool) {
		p, eof := spool.ReadAt(s, offset, most)
		return p, offset, eof
	}, nil
}

// record finds an ended call: an agent's among its own, for others the latest of
// anybody's.
func (ss *session) record(callID string) (journal.Record, error) {
	if client := ss.client(); client != "" {
		return ss.srv.opt.Journal.Find(context.Background(), client, callID)
	}
	return ss.srv.opt.Journal.FindAny(context.Background(), callID)
}

func stream(name string) tools.Stream {
	switch name {
	case "stderr":
		return tools.Stderr
	case "combined":
		return tools.Combined
	default:
		return tools.Stdout
	}
}

func (s *Server) serveHealth(w http.ResponseWriter, _ *http.Request, _ Token) {
	w.Write([]byte("ok\n"))
}

// serveReady tells whether new calls are taken.
func (s *Server) serveReady(w http.ResponseWriter, _ *http.Request, _ Token) {
	s.mu.Lock()
	closing := s.closing
	s.mu.Unlock()
	if closing {
		http.Error(w, "stopping", http.StatusServiceUnavailable)
		return
	}
	w.Write([]byte("ready\n"))
}

// serveMessages is list_messages for HTTP: the same fields as query parameters,
// the same answer.
func (s *Server) serveMessages(w http.ResponseWriter, r *http.Request, who Token) {
	m, err := listFromQuery(r.URL.Query())
	if err != nil {
		writeJSON(w, http.StatusBadRequest, message.Errorf(message.InvalidArguments, "%v", err))
		return
	}
	page, e := s.list(r.Context(), (&session{who: who}).client(), m)
	switch {
	case e != nil && e.Type == message.NotFound:
		writeJSON(w, http.StatusNotFound, e)
	case e != nil:
		writeJSON(w, http.StatusInternalServerError, e)
	default:
		writeJSON(w, http.StatusOK, page)
	}
}

func listFromQuery(q url.Values) (*message.ListMessages, error) {
	m := &message.ListMessages{
		RequestID: q.Get("request_id"), Before: q.Get("before"), After: q.Get("after"), Limit: 100,
		RunID: q.Get("run_id"), StepID: q.Get("step_id"), AgentID: q.Get("agent_id"),
		ConversationID: q.Get("conversation_id"), CallID: q.Get("tool_call_id"), OTID: q.Get("otid"), Status: q.Get("status"),
	}
	if types := q.Get("message_types"); types != "" {
		m.MessageTypes = strings.Split(types, ",")
	}
	switch q.Get("order") {
	case "", "desc":
	case "asc":
		m.Ascending = true
	default:
		return nil, errors.New("order must be asc or desc")
	}
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 1000 {
			return nil, errors.New("limit must be a number from 1 to 1000")
		}
		m.Limit = n
	}
	return m, nil
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
