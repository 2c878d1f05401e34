package journal

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/message"
)

// pageBytes limits the bodies of a page, because each slow client may have a page in memory.
const pageBytes = 1 << 20

// Query selects messages. Empty fields select all.
type Query struct {
	Before, After string // ids of messages: older and newer, whatever the order
	AfterSeq      int64  // newer than this message number
	Limit         int    // 0 = 100, at most 1000
	Ascending     bool   // oldest first; default newest first

	Client         string
	AgentID        string
	ConversationID string
	RunID          string
	StepID         string
	OTID           string
	GroupID        string
	SenderID       string
	Workspace      string // of the call, canonical
	CallID         string
	Status         string
	MessageTypes   []string
}

// Page has up to Limit messages in the requested order, fewer if their bodies are large.
type Page struct {
	Messages   []Message
	HasMore    bool   // more messages match
	NextBefore string // oldest id of the page
	NextAfter  string // newest id
}

// List returns the messages that a query selects. The error is ErrNotFound if Before or After names no message. With
// another error the page has the readable messages.
func (j *Journal) List(ctx context.Context, q Query) (Page, error) {
	limit := 100
	if q.Limit > 0 {
		limit = min(q.Limit, 1000)
	}
	var found []Message
	err := j.query(func(v *view) (err error) {
		found, err = j.messages(ctx, v, q, limit+1)
		return err
	})
	if err != nil {
		err = fmt.Errorf("cannot list messages: %w", err)
	}
	p := Page{Messages: found[:fitting(found, limit)]}
	p.HasMore = len(p.Messages) < len(found)
	if n := len(p.Messages); n > 0 {
		oldest, newest := p.Messages[0].ID, p.Messages[n-1].ID
		if !q.Ascending {
			oldest, newest = newest, oldest
		}
		p.NextBefore, p.NextAfter = oldest, newest
	}
	return p, err
}

func fitting(found []Message, limit int) int {
	size := 0
	for i, m := range found {
		size += len(m.Body)
		if i == limit || i > 0 && size > pageBytes {
			return i
		}
	}
	return len(found)
}

func (j *Journal) messages(ctx context.Context, v *view, q Query, most int) (list []Message, err error) {
	v.lenient = true
	scan, err := q.scan(ctx, v)
	if err != nil {
		return nil, err
	}
	r := messageReader{v, map[Key]*Call{}, map[identity]string{}}
	size := 0
	err = v.messages(ctx, scan, func(at foundMessage) (bool, error) {
		m, err := r.read(at)
		fits := false
		if err == nil {
			fits, err = r.fits(ctx, &m, &q)
		}
		if v.skips(err) {
			return true, nil
		}
		if fits {
			list = append(list, m.Message)
			size += len(m.Body)
		}
		return len(list) < most && (size <= pageBytes || len(list) < 2), err
	})
	return list, cmp.Or(err, v.skipped)
}

func (q *Query) scan(ctx context.Context, v *view) (messageScan, error) {
	s := messageScan{between: between{after: q.AfterSeq, before: math.MaxInt64}, ascending: q.Ascending, workspace: q.Workspace}
	before, err := v.seqOf(ctx, q.Before)
	if err != nil {
		return s, err
	}
	after, err := v.seqOf(ctx, q.After)
	if err != nil {
		return s, err
	}
	if s.after = max(s.after, after); before > 0 {
		s.before = before
	}
	for _, f := range q.fields(&Message{}) {
		if f.want != "" {
			s.conditions = append(s.conditions, v.x.equals(f.column, f.want)...)
		}
	}
	if q.Workspace != "" {
		s.conditions = append(s.conditions, v.x.equals(mWorkspace, q.Workspace)...)
	}
	var types []uint32
	for _, t := range q.MessageTypes {
		types = append(types, v.x.hash.of(t))
	}
	if len(types) > 0 {
		s.conditions = append(s.conditions, condition{mType, types})
	}
	return s, nil
}

// field is the wanted value of a column, and the value of a message.
type field struct {
	column   int
	want, is string
}

// fields is ordered by how few messages a field selects, fewest first.
func (q *Query) fields(m *Message) []field {
	return []field{
		{mCall, q.CallID, m.CallID},
		{mOTID, q.OTID, m.OTID},
		{mStep, q.StepID, m.StepID},
		{mRun, q.RunID, m.RunID},
		{mStatus, q.Status, m.Status},
		{mConversation, q.ConversationID, m.ConversationID},
		{mAgent, q.AgentID, m.AgentID},
		{mGroup, q.GroupID, m.GroupID},
		{mSender, q.SenderID, m.SenderID},
		{mClient, q.Client, m.Client},
	}
}

func (v *view) seqOf(ctx context.Context, id string) (seq int64, err error) {
	if id == "" {
		return 0, nil
	}
	r := messageReader{v, map[Key]*Call{}, nil}
	err = v.messages(ctx, messageScan{between: between{before: math.MaxInt64}, conditions: v.x.equals(mID, id)}, func(at foundMessage) (bool, error) {
		m, err := r.read(at)
		if v.skips(err) {
			return true, nil
		}
		if err == nil && m.ID == id {
			seq = at.seq
		}
		return seq == 0, err
	})
	if err == nil && seq == 0 {
		err = cmp.Or(v.skipped, fmt.Errorf("message %q: %w", id, ErrNotFound))
	}
	return seq, err
}

type messageReader struct {
	v      *view
	calls  map[Key]*Call
	places map[identity]string
}

type placed struct {
	Message
	workspace string
	known     bool
}

// read reads a message. The error is ErrNotFound if it was removed meanwhile.
func (r *messageReader) read(at foundMessage) (m placed, err error) {
	e, rec, err := r.v.event(at.place)
	if err != nil {
		return m, err
	}
	missing := r.v.missing
	m, err = r.message(at, e, rec)
	if err == nil && missing != nil && bytes.Contains(m.Body, []byte(lostBody)) {
		m.Lost = missing
		err = m.note()
	}
	return m, err
}

// note replaces a body that is no longer JSON because a text of it is lost.
func (m *Message) note() (err error) {
	if !bytes.HasPrefix(m.Body, []byte(lostBody)) && json.Valid(m.Body) {
		return nil
	}
	fields := map[string]any{"id": m.ID, "seq_id": m.Seq, "date": m.Time, "message_type": m.Type, "tool_call_id": m.CallID, "lost": lostNote}
	if m.Type == returnType {
		fields["status"], fields["tool_return"] = m.Status, lostNote
	}
	m.Body, err = message.Encode(fields)
	return err
}

func (r *messageReader) message(at foundMessage, e event, rec chain.Record) (m placed, err error) {
	switch e := e.(type) {
	case *callEvent:
		if at.seq == e.request.seq {
			return placed{e.message(rec.Time), e.call.Workspace, true}, nil
		}
		if e.answer != nil {
			return placed{e.answer.message(&e.call, rec.Time), e.call.Workspace, true}, nil
		}
	case *returnEvent:
		c := r.calls[Key(e.key)]
		if c == nil {
			asked, err := r.v.callEvent(Key(e.key))
			if err != nil {
				return m, err
			}
			c = &asked.call
			r.calls[Key(e.key)] = c
		}
		return placed{e.message(c, rec.Time), c.Workspace, true}, nil
	case *messageEvent:
		return placed{Message: e.m}, nil
	}
	return m, ErrNotFound
}

// fits checks the message itself, because index entries may match by a hash collision.
func (r *messageReader) fits(ctx context.Context, m *placed, q *Query) (bool, error) {
	for _, f := range q.fields(&m.Message) {
		if f.want != "" && f.want != f.is {
			return false, nil
		}
	}
	if len(q.MessageTypes) > 0 && !slices.Contains(q.MessageTypes, m.Type) {
		return false, nil
	}
	if q.Workspace == "" {
		return true, nil
	}
	workspace, err := r.workspace(ctx, m)
	return workspace == q.Workspace, err
}

func (r *messageReader) workspace(ctx context.Context, m *placed) (string, error) {
	if m.known || m.CallID == "" {
		return m.workspace, nil
	}
	id := identity{m.Client, m.AgentID, m.CallID}
	if known, is := r.places[id]; is {
		return known, nil
	}
	rec, err := r.v.find(ctx, cIdentity, r.v.x.hash.identity(id), id.is)
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	r.places[id] = rec.Workspace
	return rec.Workspace, err
}
