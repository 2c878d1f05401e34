package journal

import (
	"cmp"
	"slices"
	"time"
)

// identity is what a client repeats to mean the same call.
type identity struct{ client, agent, id string }

func (id identity) is(c *Call) bool { return id == identity{c.Client, c.AgentID, c.ID} }

// table is the state of the log that decides what may be appended. It changes only by apply, in
// the order of the log, so that each process has the same. What changed since the last commit
// can be taken back.
type table struct {
	numbers
	calls  map[Key]*entry
	ids    map[identity]Key
	fences map[string][]string // by client, the oldest first

	// load finds a call that has ended long ago; nil without one.
	load   func(Key) (*Record, error)
	filter *filter // nil without one; knows more calls

	// What takes back the changes since the last commit.
	before  numbers
	changed []changed // in their order
	undo    []func()  // all else, in their order
}

type numbers struct {
	number  uint64 // of the last record
	lastKey Key
	lastSeq int64
	begins  int64 // the first segment that stays after the last removal; 0 = all are there
}

// changed is a call as it was before. What held it is used again, up to changedMost.
type changed struct {
	call *entry
	was  entry
}

const changedMost = 1 << 10

type entry struct {
	Record
	last uint64 // number of the last record of it
}

func newTable() *table {
	return &table{
		calls: map[Key]*entry{}, ids: map[identity]Key{}, fences: map[string][]string{},
		load: func(Key) (*Record, error) { return nil, nil },
	}
}

func (t *table) commit() {
	clear(t.changed)
	if t.before, t.undo, t.changed = t.numbers, nil, t.changed[:0]; cap(t.changed) > changedMost {
		t.changed = nil
	}
}

// rollback takes back what was applied since the last commit.
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

// find returns a call by its identity; nil when the table has none.
func (t *table) find(c *Call) *Record {
	if e := t.calls[t.ids[identity{c.Client, c.AgentID, c.ID}]]; e != nil {
		return &e.Record
	}
	return nil
}

// recall returns a call, which the table then knows; nil when there is none.
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

// latest returns the call of the highest key that fits; nil when the table has none.
func (t *table) latest(fits func(*Record) bool) *Record {
	var found *entry
	for _, e := range t.calls {
		if fits(&e.Record) && (found == nil || e.Key > found.Key) {
			found = e
		}
	}
	if found == nil {
		return nil
	}
	return &found.Record
}

// next are the numbers for a new call and a new message.
func (t *table) next() (Key, int64) { return t.lastKey + 1, t.lastSeq + 1 }

// may returns an error unless an event may follow what is known of its call. A call that
// has ended may be unknown here: then the index has it; see Journal.known.
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

// apply takes up an event, which may follow what is known, and the number and time of its
// record. It returns the messages that the event has added.
func (t *table) apply(e event, number uint64, at time.Time) (added []Message) {
	t.number = number
	switch e := e.(type) {
	case *callEvent:
		return t.received(e, at)
	case *decisionEvent:
		t.change(Key(e.key), func(r *entry) { r.decided(e, at) })
	case *startedEvent:
		t.change(Key(e.key), func(r *entry) {
			if r.Process, r.SpoolDir, r.StartedAt = e.process, e.spool, e.at; r.State == Intended {
				r.State = Running
			}
		})
	case *returnEvent:
		t.change(Key(e.key), func(r *entry) {
			returned(r, e, at)
			added = append(added, returnMessage(&r.Call, e, at))
		})
		t.count(e.seq)
	case *deliveredEvent:
		t.change(Key(e.key), func(r *entry) {
			if r.State = Delivered; r.DeliveredAt.IsZero() {
				r.DeliveredAt = e.at
			}
		})
	case *messageEvent:
		t.count(e.m.Seq)
		added = append(added, e.m)
	case *fenceEvent:
		t.fence(e)
	case *adoptedEvent:
		t.change(Key(e.key), func(r *entry) { r.adopted(parseIdentity(e.by)) })
	case *removedEvent:
		t.removed(e)
	}
	return added
}

// decided takes up a decision. A question that is asked again has its first time.
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

// adopted makes the call that of another daemon. That it started is written down without a
// sync: after a crash of the machine that may be lost, so the call may have run.
func (r *entry) adopted(by Identity) {
	if r.State == Intended && !by.sameBoot(r.Daemon) {
		r.State = Running
	}
	r.Daemon = by
}

// received takes up a call, with its answer if it has one.
func (t *table) received(e *callEvent, at time.Time) (added []Message) {
	k := Key(e.key)
	r := &entry{last: t.number, Record: Record{Key: k, Call: e.call, State: State(e.state), Decision: e.decision, Daemon: parseIdentity(e.daemon), ReceivedAt: at}}
	r.MessageType, r.Message, r.Arguments = "", nil, nil
	if e.intended {
		r.IntendedAt = at
	}
	if e.intended || e.decision != (Decision{}) {
		r.DecidedAt = at
	}
	id := identity{r.Client, r.AgentID, r.ID}
	earlier := t.ids[id] // 0, unless that did not start
	t.calls[k], t.ids[id], t.lastKey = r, k, max(t.lastKey, k)
	if t.filter != nil {
		t.filter.add(id)
	}
	t.undo = append(t.undo, func() {
		delete(t.calls, k)
		if t.ids[id] = earlier; earlier == 0 {
			delete(t.ids, id)
		}
	})
	t.count(e.request.Seq)
	added = []Message{requestMessage(e, at)}
	if e.answered {
		t.count(e.answer.seq)
		returned(r, &e.answer, at)
		added = append(added, returnMessage(&e.call, &e.answer, at))
	}
	return added
}

// restore adds a call that was recorded long ago.
func (t *table) restore(r *Record) {
	id := identity{r.Client, r.AgentID, r.ID}
	t.calls[r.Key], t.ids[id] = &entry{Record: *r}, max(r.Key, t.ids[id])
}

// change has do change a call that the table has.
func (t *table) change(k Key, do func(*entry)) {
	r := t.calls[k]
	if r == nil {
		return
	}
	t.changed = append(t.changed, changed{r, *r})
	r.last = t.number
	do(r)
}

// count takes up the number of a message.
func (t *table) count(seq int64) { t.lastSeq = max(t.lastSeq, seq) }

// removed takes up what is to be known without the segments that were removed.
func (t *table) removed(e *removedEvent) {
	fences := t.fences
	t.undo = append(t.undo, func() { t.fences = fences })
	t.begins, t.lastKey, t.fences = e.stays, max(t.lastKey, Key(e.lastKey)), map[string][]string{}
	t.count(e.lastSeq)
	for _, f := range e.fences {
		t.fences[f.client] = append(t.fences[f.client], f.id)
	}
}

// fence adds an id to those of a client, or removes it.
func (t *table) fence(e *fenceEvent) {
	before := t.fences[e.client]
	t.undo = append(t.undo, func() { t.fences[e.client] = before })
	now := slices.DeleteFunc(slices.Clone(before), func(id string) bool { return id == e.id })
	if e.most > 0 {
		now = append(now, e.id)
		now = now[max(0, len(now)-int(e.most)):]
	}
	t.fences[e.client] = now
}

// forget drops the calls that have ended and of which no later record than that of a number
// is: an index has them.
func (t *table) forget(number uint64) {
	for k, r := range t.calls {
		if !r.ReturnedAt.IsZero() && r.last <= number {
			delete(t.calls, k)
			if id := (identity{r.Client, r.AgentID, r.ID}); t.ids[id] == k {
				delete(t.ids, id)
			}
		}
	}
}

func returned(r *entry, e *returnEvent, at time.Time) {
	o := e.outcome
	r.State, r.ReturnedAt, r.Result = Returned, at, e.body
	r.Status, r.ErrorType, r.ExitCode, r.Signal, r.Sandbox = o.Status, o.ErrorType, o.ExitCode, o.Signal, o.Sandbox
	r.Canonical = cmp.Or(o.Canonical, r.Canonical)
	if o.Decision == (Decision{}) {
		return
	}
	r.Decision = o.Decision
	if r.DecidedAt.IsZero() {
		r.DecidedAt = at
	}
}

func requestMessage(e *callEvent, at time.Time) Message {
	m := e.call.message(at)
	m.Seq, m.ID, m.Body = e.request.Seq, e.request.ID, e.request.Body
	return m
}

func returnMessage(c *Call, e *returnEvent, at time.Time) Message {
	m := c.returned(e.outcome)
	m.Time, m.Seq, m.ID, m.Body = at, e.seq, e.id, e.body
	return m
}
