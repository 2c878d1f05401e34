package journal

import (
	"cmp"
	"slices"
	"time"
)

// identity is what identifies a repeated call.
type identity struct{ client, agent, id string }

func (c *Call) identity() identity { return identity{c.Client, c.AgentID, c.ID} }

func (id identity) is(c *Call) bool { return id == c.identity() }

// table is the state that determines which event may follow. Only apply changes it, in the order of the log, so that
// it is the same in all processes. Changes since the last commit can be rolled back.
type table struct {
	numbers
	calls        map[Key]*entry
	ids          map[identity]Key
	earlyCancels map[string][]string // by client, oldest first

	// load finds a call that was dropped from the table after it ended, or nil.
	load   func(Key) (*Record, error)
	filter *filter // may be nil

	// For rollback.
	before  numbers
	changed []changed // in order
	undo    []func()  // all other changes, in order
}

type numbers struct {
	number  uint64 // of the last record
	lastKey Key
	lastSeq int64
	begins  int64 // first segment that was not removed; 0 = none removed
}

type changed struct {
	call *entry
	was  entry
}

const changedMost = 1 << 10

type entry struct {
	Record
	last uint64 // number of its last record
}

func newTable() *table {
	return &table{
		calls: map[Key]*entry{}, ids: map[identity]Key{}, earlyCancels: map[string][]string{},
		load: func(Key) (*Record, error) { return nil, nil },
	}
}

func (t *table) commit() {
	clear(t.changed)
	if t.before, t.undo, t.changed = t.numbers, nil, t.changed[:0]; cap(t.changed) > changedMost {
		t.changed = nil
	}
}

func (t *table) rollback() {
	for _, c := range slices.Backward(t.changed) {
		*c.call = c.was
	}
	for _, undo := range slices.Backward(t.undo) {
		undo()
	}
	t.numbers = t.before
	t.commit()
}

// find returns the call in the table with the identity of c, or nil.
func (t *table) find(c *Call) *Record {
	if e := t.calls[t.ids[c.identity()]]; e != nil {
		return &e.Record
	}
	return nil
}

// recall returns a call, loaded into the table if necessary, or nil if it is unknown.
func (t *table) recall(k Key) (*Record, error) {
	if e := t.calls[k]; e != nil {
		return &e.Record, nil
	}
	r, err := t.load(k)
	if r != nil {
		t.restore(r)
	}
	return r, err
}

func (t *table) next() (Key, int64) { return t.lastKey + 1, t.lastSeq + 1 }

// may returns ErrState if an event must not follow the state of its call.
func may(rec *Record, e event) error {
	var allowed []State
	switch e.(type) {
	case *decisionEvent:
		allowed = []State{Received, Waiting, Decided}
	case *startedEvent:
		allowed = []State{Intended, Running}
	case *returnEvent, *adoptedEvent:
		allowed = []State{Received, Waiting, Decided, Intended, Running}
	case *deliveredEvent:
		allowed = []State{Returned, Delivered}
	default:
		return nil
	}
	if !slices.Contains(allowed, rec.State) {
		return ErrState
	}
	return nil
}

// apply applies an event, with the number and time of its record. may must have allowed it.
func (t *table) apply(e event, number uint64, at time.Time) {
	t.number = number
	switch e := e.(type) {
	case *callEvent:
		t.received(e, at)
	case *decisionEvent:
		t.change(Key(e.key), func(r *entry) { r.decided(e, at) })
	case *startedEvent:
		t.change(Key(e.key), func(r *entry) {
			if r.Process, r.SpoolDir, r.StartedAt = e.process, e.spool, e.at; r.State == Intended {
				r.State = Running
			}
		})
	case *returnEvent:
		t.change(Key(e.key), func(r *entry) { returned(r, e, at) })
		t.count(e.seq)
	case *deliveredEvent:
		t.change(Key(e.key), func(r *entry) {
			if r.State = Delivered; r.DeliveredAt.IsZero() {
				r.DeliveredAt = e.at
			}
		})
	case *messageEvent:
		t.count(e.m.Seq)
	case *earlyCancelEvent:
		t.cancelEarly(e)
	case *adoptedEvent:
		t.change(Key(e.key), func(r *entry) { r.adopted(e.by) })
	case *removedEvent:
		t.removed(e)
	}
}

// decided applies a decision. A repeated request for approval keeps the first time.
func (r *entry) decided(e *decisionEvent, at time.Time) {
	again := r.State == Waiting && State(e.state) == Waiting
	r.State, r.Decision = State(e.state), e.decision
	if !again {
		r.DecidedAt = at
	}
	if r.State == Intended || r.State == Running {
		r.IntendedAt = at
	}
}

// adopted changes the owner. Starts are not synced, so an intended call may have run before a crash of the machine.
func (r *entry) adopted(by string) {
	if r.State == Intended && !sameBoot(by, r.Daemon) {
		r.State = Running
	}
	r.Daemon = by
}

func (t *table) received(e *callEvent, at time.Time) {
	k := Key(e.key)
	r := &entry{last: t.number, Record: Record{Key: k, Call: e.call, State: State(e.state), Decision: e.decision, Daemon: e.daemon, ReceivedAt: at}}
	r.MessageType, r.Message, r.Arguments = "", nil, nil
	if e.intended {
		r.IntendedAt = at
	}
	if e.intended || e.decision != (Decision{}) {
		r.DecidedAt = at
	}
	id := r.identity()
	earlier := t.ids[id] // 0 unless an earlier call did not start
	t.calls[k], t.ids[id], t.lastKey = r, k, max(t.lastKey, k)
	if t.filter != nil {
		t.filter.add(t.filter.hash.identity(id))
	}
	t.undo = append(t.undo, func() {
		delete(t.calls, k)
		if t.ids[id] = earlier; earlier == 0 {
			delete(t.ids, id)
		}
	})
	t.count(e.request.seq)
	if e.answer != nil {
		t.count(e.answer.seq)
		returned(r, e.answer, at)
	}
}

func (t *table) restore(r *Record) {
	id := r.identity()
	t.calls[r.Key], t.ids[id] = &entry{Record: *r}, max(r.Key, t.ids[id])
}

func (t *table) change(k Key, do func(*entry)) {
	r := t.calls[k]
	if r == nil {
		return
	}
	t.changed = append(t.changed, changed{r, *r})
	r.last = t.number
	do(r)
}

func (t *table) count(seq int64) { t.lastSeq = max(t.lastSeq, seq) }

func (t *table) removed(e *removedEvent) {
	earlyCancels := t.earlyCancels
	t.undo = append(t.undo, func() { t.earlyCancels = earlyCancels })
	t.begins, t.lastKey, t.earlyCancels = e.stays, max(t.lastKey, Key(e.lastKey)), map[string][]string{}
	t.count(e.lastSeq)
	for _, f := range e.earlyCancels {
		t.earlyCancels[f.client] = append(t.earlyCancels[f.client], f.id)
	}
}

// cancelEarly adds an id of a client or, if most is zero, removes it.
func (t *table) cancelEarly(e *earlyCancelEvent) {
	before := t.earlyCancels[e.client]
	t.undo = append(t.undo, func() { t.earlyCancels[e.client] = before })
	now := slices.DeleteFunc(slices.Clone(before), func(id string) bool { return id == e.id })
	if e.most > 0 {
		now = append(now, e.id)
		now = now[max(0, len(now)-int(e.most)):]
	}
	t.earlyCancels[e.client] = now
}

// forget drops ended calls that have no records after number, because the index has them.
func (t *table) forget(number uint64) {
	for k, r := range t.calls {
		if !r.ReturnedAt.IsZero() && r.last <= number {
			delete(t.calls, k)
			if id := r.identity(); t.ids[id] == k {
				delete(t.ids, id)
			}
		}
	}
}

func returned(r *entry, e *returnEvent, at time.Time) {
	o := e.outcome
	r.State, r.ReturnedAt, r.Result = Returned, at, e.body
	r.Status, r.ErrorType, r.ExitCode, r.Signal, r.Sandbox, r.Output = o.Status, o.ErrorType, o.ExitCode, o.Signal, o.Sandbox, o.Output
	r.Canonical = cmp.Or(o.Canonical, r.Canonical)
	if o.Decision == (Decision{}) {
		return
	}
	r.Decision = o.Decision
	if r.DecidedAt.IsZero() {
		r.DecidedAt = at
	}
}
