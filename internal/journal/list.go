package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// pageBytes limits the bodies of a page, since each slow client may have such a page waiting.
const pageBytes = 1 << 20

// Query selects messages. Empty fields select all.
type Query struct {
	Before, After string // message ids: older and newer, whatever the order
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

// Page is up to Limit messages in the requested order, fewer if their bodies are large.
type Page struct {
	Messages   []Message
	HasMore    bool   // more messages match
	NextBefore string // oldest id of the page
	NextAfter  string // newest id
}

// List returns the messages that a query selects. The error is ErrNotFound if Before or After names
// no message. With another error it returns the readable ones.
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

// fitting returns how many messages fit a page: at least one, at most limit.
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

// messages reads up to one page and one more.
func (j *Journal) messages(ctx context.Context, v *view, q Query, most int) (list []Message, err error) {
	v.lists = true
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
		if v.passes(err) {
			return true, nil
		}
		if fits {
			list = append(list, m.Message)
			size += len(m.Body)
		}
		return len(list) < most && (size <= pageBytes || len(list) < 2), err
	})
	return list, cmp.Or(err, v.lost)
}

func (q *Query) scan(ctx context.Context, v *view) (messageScan, error) {
	s := messageScan{between: between{after: q.AfterSeq, before: math.MaxInt64}, ascending: q.Ascending, workspace: q.Workspace}
	if q.Before != "" {
		seq, err := v.seqOf(ctx, q.Before)
		if err != nil {
			return s, err
		}
		s.before = seq
	}
	if q.After != "" {
		seq, err := v.seqOf(ctx, q.After)
		if err != nil {
			return s, err
		}
		s.after = max(s.after, seq)
	}
	for _, f := range []struct {
		column int
		value  string
	}{
		{mCall, q.CallID},
		{mOTID, q.OTID},
		{mStep, q.StepID},
		{mRun, q.RunID},
		{mStatus, q.Status},
		{mConversation, q.ConversationID},
		{mAgent, q.AgentID},
		{mGroup, q.GroupID},
		{mSender, q.SenderID},
		{mWorkspace, q.Workspace},
		{mClient, q.Client},
	} {
		if f.value != "" {
			s.conditions = append(s.conditions, v.x.are(f.column, f.value)...)
		}
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

// seqOf returns the number of a message.
func (v *view) seqOf(ctx context.Context, id string) (seq int64, err error) {
	r := messageReader{v, map[Key]*Call{}, nil}
	err = v.messages(ctx, messageScan{between: between{before: math.MaxInt64}, conditions: v.x.are(mID, id)}, func(at foundMessage) (bool, error) {
		m, err := r.read(at)
		if v.passes(err) {
			return true, nil
		}
		if err == nil && m.ID == id {
			seq = at.seq
		}
		return seq == 0, err
	})
	if err == nil && seq == 0 {
		err = cmp.Or(v.lost, fmt.Errorf("message %q: %w", id, ErrNotFound))
	}
	return seq, err
}

// messageReader reads messages from the log.
type messageReader struct {
	v      *view
	calls  map[Key]*Call // cache
	places map[identity]string
}

// placed is a message and the workspace of its call.
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
	switch e := e.(type) {
	case *callEvent:
		if at.seq == e.request.Seq {
			return placed{requestMessage(e, rec.Time), e.call.Workspace, true}, nil
		}
		return placed{returnMessage(&e.call, &e.answer, rec.Time), e.call.Workspace, true}, nil
	case *returnEvent:
		c := r.calls[Key(e.key)]
		if c == nil {
			asked, err := r.v.asked(Key(e.key))
			if err != nil {
				return m, err
			}
			c = &asked.call
			r.calls[Key(e.key)] = c
		}
		return placed{returnMessage(c, e, rec.Time), c.Workspace, true}, nil
	case *messageEvent:
		return placed{Message: e.m}, nil
	}
	return m, ErrNotFound
}

// fits reports whether a query selects a message, beyond the hashes.
func (r *messageReader) fits(ctx context.Context, m *placed, q *Query) (bool, error) {
	for _, f := range [][2]string{
		{q.Client, m.Client},
		{q.AgentID, m.AgentID},
		{q.ConversationID, m.ConversationID},
		{q.RunID, m.RunID},
		{q.StepID, m.StepID},
		{q.OTID, m.OTID},
		{q.GroupID, m.GroupID},
		{q.SenderID, m.SenderID},
		{q.CallID, m.CallID},
		{q.Status, m.Status},
	} {
		if f[0] != "" && f[0] != f[1] {
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

// workspace returns that of the message's call; "" without one.
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
