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

// Receive records a call and its request. If it is recorded already, Receive returns the record,
// fresh is false and nothing is written, unless the call did not start before a crash.
//
// After an error the call must not run. It is not recorded, unless the error is ErrUnknown; with
// fresh it is recorded, but perhaps not on the disk.
func (j *Journal) Receive(ctx context.Context, c Call) (rec Record, fresh bool, err error) {
	return j.receive(ctx, soon, c, Received, Decision{}, nil)
}

// Begin combines Receive and Intend: all is on the disk when it returns with fresh.
func (j *Journal) Begin(ctx context.Context, c Call, d Decision) (rec Record, fresh bool, err error) {
	return j.receive(ctx, synced, c, Intended, d, nil)
}

// Answer combines Receive and Finish for a call that was refused or, with ran, for a read-only call
// that already executed. build is called only for a fresh call.
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

func (j *Journal) receive(ctx context.Context, dur durability, c Call, s State, d Decision, a *answer) (rec Record, fresh bool, err error) {
	err = j.write.record(dur, func(b *batch) (err error) {
		if rec, err = j.known(ctx, b.table, &c); !errors.Is(err, ErrNotFound) && !rec.mayRepeat(&c) {
			return err
		}
		j.seldom(b.table)
		if err := j.mayGrow(); err != nil {
			return err
		}
		e, err := j.newCall(b, c, s, d, a)
		if err == nil {
			err = b.append(kindCall, e)
		}
		fresh = err == nil
		rec = Record{Key: Key(e.key), Call: c, State: s, Decision: d, Daemon: j.daemon, ReceivedAt: b.log.Time()}
		rec.MessageType, rec.Message, rec.Arguments = "", nil, nil
		return err
	})
	var unsynced *unsyncedError
	switch unsure := errors.Is(err, chain.ErrUnsure); {
	case err == nil:
		return rec, fresh, nil
	case unsure && fresh: // its number may be reused
		rec.Key = 0
		return rec, true, fmt.Errorf("cannot journal tool call %q: %w", c.ID, err)
	case unsure:
		return Record{}, false, fmt.Errorf("cannot journal tool call %q: %w; %w", c.ID, err, ErrUnknown)
	case errors.As(err, &unsynced) && !fresh:
		return rec, false, nil
	case unsynced != nil:
		return rec, true, fmt.Errorf("cannot journal tool call %q: %w", c.ID, err)
	}
	rec, looked := j.recorded(ctx, &c)
	switch {
	case looked == nil && !rec.mayRepeat(&c):
		return rec, false, nil
	case looked == nil, errors.Is(looked, ErrNotFound):
		return Record{}, false, fmt.Errorf("cannot journal tool call %q: %w", c.ID, err)
	}
	return Record{}, false, fmt.Errorf("cannot journal tool call %q: %w; %w: %w", c.ID, err, ErrUnknown, looked)
}

// known returns the recorded call with the identity of c, or ErrNotFound. The caller holds the
// table's lock.
func (j *Journal) known(ctx context.Context, t *table, c *Call) (Record, error) {
	if r := t.find(c); r != nil {
		return *r, nil
	}
	id := identity{c.Client, c.AgentID, c.ID}
	if t.filter.lacks(id) {
		return Record{}, ErrNotFound
	}
	r, err := j.index.find(ctx, cIdentity, j.index.hash.identity(id), id.is)
	r.Arguments = nil
	return r, err
}

// mayRepeat reports whether a recorded call may be sent again as c.
func (r *Record) mayRepeat(c *Call) bool {
	return r.ErrorType == string(message.NotStartedAfterCrash) && r.ArgsHash == c.ArgsHash
}

// recorded is known without a write. The error is ErrNotFound only if there certainly is none.
func (j *Journal) recorded(ctx context.Context, c *Call) (Record, error) {
	w := j.write
	w.known.RLock()
	rec, err := j.known(ctx, w.table, c)
	w.known.RUnlock()
	if errors.Is(err, ErrNotFound) {
		err = cmp.Or(w.present(), err) // if the log was moved, others may write another file
	}
	return rec, err
}

// newCall makes the event of a call. Its request is the next message, its answer the one after.
func (j *Journal) newCall(b *batch, c Call, s State, d Decision, a *answer) (*callEvent, error) {
	key, seq := b.table.next()
	request := c.message(b.log.Time())
	request.Seq = seq
	request, err := stamped(request)
	e := &callEvent{key: int64(key), daemon: j.daemon.String(), state: string(s), intended: s == Intended || s == Running, decision: d, call: c, request: request}
	if a == nil || err != nil {
		return e, err
	}
	e.answered, e.answer = true, returnEvent{key: int64(key), outcome: a.Outcome, seq: seq + 1}
	e.answer.id, e.answer.body, err = a.build(seq + 1)
	return e, err
}

// Decide records, synced, that a person is asked (Waiting) or what was decided (Decided).
func (j *Journal) Decide(_ context.Context, k Key, s State, d Decision) error {
	return j.update(synced, "decision", kindDecision, &decisionEvent{int64(k), string(s), d})
}

// Intend records, synced, the decision and that the call is about to run; only then may Start be
// called. The second time the error is ErrState.
func (j *Journal) Intend(ctx context.Context, k Key, d Decision) error {
	return j.Decide(ctx, k, Intended, d)
}

// Start records that a call may have effects from now on, its process and the directory of its
// output, either of which may be empty. It survives the daemon at once, and may be repeated.
func (j *Journal) Start(k Key, process, spoolDir string) error {
	return j.update(soon, "start", kindStarted, &startedEvent{int64(k), time.Now(), process, spoolDir})
}

// Builder makes the id and the body, a JSON object, of the return with a message number. It blocks
// other writers and must not call the journal.
type Builder func(seq int64) (id string, body []byte, err error)

// Finish records a call's return, which may be sent afterwards and survives the daemon at once. A
// second Finish is ErrState. On a full disk it uses the ballast.
func (j *Journal) Finish(_ context.Context, k Key, o Outcome, build Builder) (seq int64, err error) {
	finish := func(b *batch) (err error) {
		_, seq = b.table.next()
		e := &returnEvent{key: int64(k), outcome: o, seq: seq}
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

// Delivered records that a return was written to its client. It does not wait; failed receives an
// error. It may be repeated.
func (j *Journal) Delivered(k Key, failed func(error)) {
	j.updateLater("delivery", kindDelivered, &deliveredEvent{int64(k), time.Now()}, failed)
}

// Append records a message outside a call's life and returns its number. The journal sets Seq and
// Time; see Message for its ID.
func (j *Journal) Append(_ context.Context, m Message) (seq int64, err error) {
	err = j.write.record(soon, func(b *batch) (err error) {
		m.Time = b.log.Time()
		_, m.Seq = b.table.next()
		if m.Direction == In {
			if m, err = stamped(m); err != nil {
				return err
			}
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

// message is the request as a Message.
func (c *Call) message(now time.Time) Message {
	return Message{
		Time: now, Type: c.MessageType, Direction: In, Client: c.Client,
		AgentID: c.AgentID, ConversationID: c.ConversationID, RunID: c.RunID, StepID: c.StepID,
		OTID: c.OTID, GroupID: c.GroupID, SenderID: c.SenderID, CallID: c.ID, Body: c.Message,
	}
}

const returnType = "tool_return_message"

// returned is the return as a Message without its body.
func (c *Call) returned(o Outcome) Message {
	return Message{
		Time: time.Now(), Type: returnType, Direction: Out, Client: c.Client,
		AgentID: c.AgentID, ConversationID: c.ConversationID, RunID: c.RunID, StepID: c.StepID,
		OTID: o.OTID, GroupID: c.GroupID, SenderID: c.SenderID, CallID: c.ID, Status: o.Status,
	}
}
