package journal

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/journal/seal"
)

// KindCall is the kind of the first record of each call.
const KindCall = kindCall

// Copied is a record for another store, with the fields of its call or message to search for.
type Copied struct {
	chain.Record
	Beside map[chain.Hash][]byte // blobs to which it refers

	Call                                       Key
	Client, Agent, Conversation, Run, ToolCall string
	Workspace, Tool, Type, Status              string
	Action, By                                 string // of a decision
}

// ID returns the random identifier of the journal in hexadecimal.
func (j *Journal) ID() (string, error) {
	if j.write.log == nil {
		return "", j.write.tampered
	}
	id := j.write.log.ID()
	return hex.EncodeToString(id[:]), nil
}

// Grown receives a value after records were added by this process, or by another when that was noticed.
func (j *Journal) Grown() <-chan struct{} { return j.grown }

// Hold keeps Remove from removing segment and later segments; 0 removes the limit.
func (j *Journal) Hold(segment uint32) { j.hold.Store(segment) }

var errEnough = errors.New("enough at once")

// Copy returns the synced records after the record after, at most most of them with about size bytes, and the number
// of further ones. The zero Mark precedes the first record. The error is chain.ErrNoMark if the journal does not have
// after.
func (j *Journal) Copy(after chain.Mark, most int, size int) (list []Copied, left uint64, err error) {
	w := j.write
	if err := w.look(); err != nil {
		return nil, 0, err
	}
	end := w.end()
	if after.Number >= end.Number && after != end {
		return nil, 0, chain.ErrNoMark
	}
	if err = w.sync(end.Number); err == nil {
		err = w.log.Copy(after, end, func(rec chain.Record) error {
			if len(list) == most || size <= 0 {
				return errEnough
			}
			c, err := copied(rec, func(h chain.Hash, size int64) ([]byte, error) {
				return chain.ReadBlob(w.texts.dir, rec.Segment, h, size)
			})
			size -= len(rec.Text)
			for _, text := range c.Beside {
				size -= len(text)
			}
			list, after = append(list, c), rec.Mark
			return err
		})
	}
	if err != nil && !errors.Is(err, errEnough) {
		return nil, 0, fmt.Errorf("cannot copy the journal: %w", err)
	}
	return list, end.Number - after.Number, nil
}

// SaysOf returns a record like Copy, but without reading its blobs.
func SaysOf(rec chain.Record) (Copied, error) { return copied(rec, unread) }

// copied decodes a record and reads its blobs. It omits lost ones.
func copied(rec chain.Record, fetch func(chain.Hash, int64) ([]byte, error)) (Copied, error) {
	c := Copied{Record: rec, Beside: map[chain.Hash][]byte{}}
	e := newEvent(rec.Kind)
	if e == nil {
		return c, nil
	}
	err := decode(rec.Body, e, func(h chain.Hash, size int64) ([]byte, error) {
		text, err := fetch(h, size)
		if err == nil {
			c.Beside[h] = text
		} else if errors.Is(err, chain.ErrBlob) {
			err = nil
		}
		return nil, err
	})
	c.describe(e)
	return c, err
}

func (c *Copied) describe(e event) {
	c.Call = callOf(e)
	switch e := e.(type) {
	case *callEvent:
		k := &e.call
		c.Call, c.Client, c.Agent, c.Conversation, c.Run, c.ToolCall = Key(e.key), k.Client, k.AgentID, k.ConversationID, k.RunID, k.ID
		c.Workspace, c.Tool, c.Type = k.Workspace, cmp.Or(k.Canonical, k.Tool), k.MessageType
		c.decided(e.decision)
		if e.answer != nil {
			c.returned(e.answer)
		}
	case *decisionEvent:
		c.decided(e.decision)
	case *returnEvent:
		c.returned(e)
	case *messageEvent:
		m := &e.m
		c.Client, c.Agent, c.Conversation, c.Run, c.ToolCall = m.Client, m.AgentID, m.ConversationID, m.RunID, m.CallID
		c.Type, c.Status = m.Type, m.Status
	}
}

func (c *Copied) decided(d Decision) {
	if d.Action != "" {
		c.Action, c.By = d.Action, d.By
	}
}

func (c *Copied) returned(e *returnEvent) {
	c.decided(e.outcome.Decision)
	c.Status, c.Tool = e.outcome.Status, cmp.Or(e.outcome.Canonical, c.Tool)
}

// Gather assembles a call, with Arguments, from all its records in order. dir contains their blobs.
func Gather(records []chain.Record, dir chain.Dir) (r Record, err error) {
	t := newTable()
	var arguments []byte
	for _, rec := range records {
		e, err := decodeRecord(rec, texts{dir: dir})
		if err != nil {
			return r, err
		}
		if e, is := e.(*callEvent); is {
			r.Key, arguments = Key(e.key), e.call.Arguments
		}
		t.apply(e, rec.Number, rec.Time)
	}
	known := t.calls[r.Key]
	if known == nil {
		return r, errors.New("its first record is missing")
	}
	r = known.Record
	r.Arguments = arguments
	return r, nil
}

// Fits reports whether q selects a gathered call, ignoring the keys and Text of q.
func (q CallQuery) Fits(r *Record) bool {
	is := func(want, has string) bool { return want == "" || want == has }
	ofAgent := is(q.Agent, r.AgentID) || q.Agent == r.Client
	named := is(q.ID, r.ID) && ofAgent && is(q.Workspace, r.Workspace)
	if !named || !is(q.Tool, r.Canonical) {
		return false
	}
	asked := !q.Asked || r.Decision.asked()
	return asked && is(q.Action, r.Decision.Action) && !r.ReceivedAt.Before(q.Since)
}

func (d *Decision) asked() bool {
	return d.Action == "ask" || slices.Contains([]string{"person", "beforehand", "deadline"}, d.By)
}

// VerifyCopy is Verify for a copy, without index, of a journal that ends with last.
func VerifyCopy(ctx context.Context, log chain.Dir, last chain.Mark, checks seal.Checks) (Report, error) {
	return verify(ctx, &files{log: log, last: last}, checks, nil)
}
