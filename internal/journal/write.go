package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/message"
)

// Receive records a call and its request. If the call is already recorded, Receive returns its record with fresh false
// and writes nothing, unless the recorded call did not start before a crash.
//
// After an error the call must not run. It may be recorded if the error is ErrUnknown or fresh is true; otherwise it
// is not.
func (j *Journal) Receive(ctx context.Context, c Call) (rec Record, fresh bool, err error) {
	return j.receive(ctx, soon, c, Received, Decision{}, nil)
}

// Begin combines Receive and Intend. If it returns fresh without an error, all is synced.
func (j *Journal) Begin(ctx context.Context, c Call, d Decision) (rec Record, fresh bool, err error) {
	return j.receive(ctx, synced, c, Intended, d, nil)
}

// Answer combines Receive and Finish for a call that was refused or, if ran is set, for a read-only call that already
// executed. build is called only for a fresh call.
func (j *Journal) Answer(ctx context.Context, c Call, ran bool, o Outcome, build Builder) (rec Record, fresh bool, err error) {
	state := Received
	if ran {
		state = Running
	}
	return j.receive(ctx, synced, c, state, o.Decision, &answer{o, build})
}

type answer struct {
	Outcome
	build Builder
}

// receive records a call in state s, with its answer unless a is nil.
func (j *Journal) receive(ctx context.Context, dur durability, c Call, s State, d Decision, a *answer) (rec Record, fresh bool, err error) {
	e := &callEvent{daemon: j.daemon, state: string(s), intended: s == Intended || s == Running, decision: d, call: c}
	var earlier *Record
	var at time.Time
	err = j.write.record(dur, func(b *batch) (err error) {
		if earlier, err = j.known(ctx, b.table, &e.call); !errors.Is(err, ErrNotFound) && !earlier.mayRepeat(&e.call) {
			return err
		}
		j.seldom(b.table)
		if err = j.mayGrow(); err == nil {
			err = e.complete(b, a)
		}
		if err == nil {
			err = b.append(kindCall, e)
		}
		fresh, at = err == nil, b.log.Time()
		return err
	})
	switch {
	case fresh:
		rec = Record{Key: Key(e.key), Call: e.call, State: s, Decision: d, Daemon: j.daemon, ReceivedAt: at}
		rec.MessageType, rec.Message, rec.Arguments = "", nil, nil
	case earlier != nil:
		rec = *earlier
	}
	if err == nil {
		return rec, fresh, nil
	}
	var unsynced *unsyncedError
	switch unsure := errors.Is(err, chain.ErrUnsure); {
	case unsure && fresh: // its key may be assigned again
		rec.Key = 0
		return rec, true, fmt.Errorf("cannot journal tool call %q: %w", c.ID, err)
	case unsure:
		return Record{}, false, fmt.Errorf("cannot journal tool call %q: %w; %w", c.ID, err, ErrUnknown)
	case errors.As(err, &unsynced) && !fresh:
		return rec, false, nil
	case unsynced != nil:
		return rec, true, fmt.Errorf("cannot journal tool call %q: %w", c.ID, err)
	}
	rec, err = j.failed(ctx, e, &c, err)
	return rec, false, err
}

// failed returns the earlier record of a call that could not be journaled again because of why; otherwise an error.
func (j *Journal) failed(ctx context.Context, e *callEvent, c *Call, why error) (Record, error) {
	earlier, err := j.recorded(ctx, &e.call)
	switch {
	case err == nil && !earlier.mayRepeat(c):
		return *earlier, nil
	case err == nil, errors.Is(err, ErrNotFound):
		return Record{}, fmt.Errorf("cannot journal tool call %q: %w", c.ID, why)
	}
	return Record{}, fmt.Errorf("cannot journal tool call %q: %w; %w: %w", c.ID, why, ErrUnknown, err)
}

// complete assigns numbers to a call, its request and its answer, and builds the answer.
func (e *callEvent) complete(b *batch, a *answer) (err error) {
	key, seq := b.table.next()
	e.key, e.request = int64(key), sent{seq: seq, body: e.call.Message}
	if err = e.request.stamp(b.log.Time(), e.call.MessageType); err != nil || a == nil {
		return err
	}
	e.answer = &returnEvent{key: e.key, outcome: a.Outcome, sent: sent{seq: seq + 1}}
	e.answer.id, e.answer.body, err = a.build(seq + 1)
	return err
}

// known returns the recorded call with the identity of c. The error is ErrNotFound if the records read so far have
// none. The caller holds the table's lock.
func (j *Journal) known(ctx context.Context, t *table, c *Call) (*Record, error) {
	if r := t.find(c); r != nil {
		found := *r
		return &found, nil
	}
	id := c.identity()
	if t.filter.lacks(id) {
		return nil, ErrNotFound
	}
	r, err := j.index.find(ctx, cIdentity, j.index.hash.identity(id), id.is)
	if err != nil {
		return nil, err
	}
	found := r
	found.Arguments = nil
	return &found, nil
}

// mayRepeat reports whether c may replace a recorded call that did not start before a crash. r may be nil.
func (r *Record) mayRepeat(c *Call) bool {
	return r != nil && r.ErrorType == string(message.NotStartedAfterCrash) && r.ArgsHash == c.ArgsHash
}

// recorded is known without a write. The error is ErrNotFound only if there is certainly no such call.
func (j *Journal) recorded(ctx context.Context, c *Call) (*Record, error) {
	w := j.write
	w.known.RLock()
	rec, err := j.known(ctx, w.table, c)
	w.known.RUnlock()
	if errors.Is(err, ErrNotFound) {
		err = cmp.Or(w.present(), err) // if the log was moved, other processes may write another file
	}
	return rec, err
}

// Decide records, synced, that a call awaits approval (Waiting) or what was decided (Decided).
func (j *Journal) Decide(k Key, s State, d Decision) error {
	return j.update(synced, "decision", kindDecision, &decisionEvent{int64(k), string(s), d})
}

// Intend records, synced, the decision and that the call is about to run. Start may be called only afterwards. A
// second Intend returns ErrState.
func (j *Journal) Intend(k Key, d Decision) error {
	return j.Decide(k, Intended, d)
}

// Start records that a call may have effects from now on, with its process and the directory of its output, which may
// be empty. The record survives the daemon at once. Start may be repeated.
func (j *Journal) Start(k Key, process, spoolDir string) error {
	return j.update(soon, "start", kindStarted, &startedEvent{int64(k), time.Now(), process, spoolDir})
}

// Builder returns the id and the body, a JSON object, of the return with a message number. It blocks other writers and
// must not call the journal.
type Builder func(seq int64) (id string, body []byte, err error)

// Finish records a call's return and its message number. The return may be sent afterwards; the record survives the
// daemon at once. A second Finish returns ErrState. On a full disk Finish uses the ballast.
func (j *Journal) Finish(k Key, o Outcome, build Builder) (seq int64, err error) {
	finish := func(b *batch) (err error) {
		_, seq = b.table.next()
		e := &returnEvent{key: int64(k), outcome: o, sent: sent{seq: seq}}
		if err = b.may(e); err != nil {
			return err
		}
		if e.id, e.body, err = build(seq); err != nil {
			return err
		}
		return b.append(kindReturn, e)
	}
	if err := j.recordAnyway(soon, finish); err != nil {
		return 0, fmt.Errorf("cannot journal the return of a call: %w", err)
	}
	return seq, nil
}

// Delivered records that a return was written to its client. It does not wait; failed receives any error. It may be
// repeated.
func (j *Journal) Delivered(k Key, failed func(error)) {
	j.updateLater("delivery", kindDelivered, &deliveredEvent{int64(k), time.Now()}, failed)
}

// Append records a message outside a call's life and returns its number. The journal sets Seq and Time; see Message
// for its ID.
func (j *Journal) Append(m Message) (seq int64, err error) {
	err = j.write.record(soon, func(b *batch) (err error) {
		m.Time = b.log.Time()
		_, m.Seq = b.table.next()
		if m.Direction == In {
			s := sent{m.Seq, m.ID, m.Body}
			if err := s.stamp(m.Time, m.Type); err != nil {
				return err
			}
			m.ID, m.Body = s.id, s.body
		}
		seq = m.Seq
		return b.append(kindMessage, &messageEvent{m})
	})
	if err != nil {
		return 0, fmt.Errorf("cannot journal a message: %w", err)
	}
	return seq, nil
}

func (j *Journal) update(d durability, what string, kind byte, e event) error {
	if err := j.write.record(d, func(b *batch) error { return b.append(kind, e) }); err != nil {
		return fmt.Errorf("cannot journal the %s of a call: %w", what, err)
	}
	return nil
}

func (j *Journal) updateLater(what string, kind byte, e event, failed func(error)) {
	j.write.later(func(b *batch) error { return b.append(kind, e) },
		func(err error) { failed(fmt.Errorf("cannot journal the %s of a call: %w", what, err)) })
}

const returnType = "tool_return_message"

func (e *callEvent) message(at time.Time) Message {
	c := &e.call
	m := c.message(at, e.request)
	m.Type, m.Direction = c.MessageType, In
	return m
}

func (e *returnEvent) message(c *Call, at time.Time) Message {
	m := c.message(at, e.sent)
	m.Type, m.Direction, m.OTID, m.Status = returnType, Out, e.outcome.OTID, e.outcome.Status
	return m
}

func (c *Call) message(at time.Time, s sent) Message {
	m := Message{Seq: s.seq, Origin: c.Origin, Body: s.body, Time: at, Client: c.Client, CallID: c.ID}
	m.ID = s.id
	return m
}
