package journal

import (
	"time"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/journal/columns"
)

// taken is a record in the form for the index.
type taken struct {
	event
	chain.Mark
	before chain.Hash
	time   time.Time
}

type tail struct {
	summary
	hash            hasher
	messages, calls columns.Table
	events          []callRecord
	flat            columns.Table // events as in a file; set by seal
	rows            map[Key]*tailCall
	places          map[sought]uint32 // workspaces of calls
}

func (t *tail) tables() []*columns.Table {
	return []*columns.Table{messageRows: &t.messages, callRows: &t.calls, eventRows: &t.flat}
}

type sought [4]uint32

type tailCall struct {
	row, request int
	last         int // index in events plus one
}

type callRecord struct {
	at     int64
	before int
}

func newTail(hash hasher, records uint64) *tail {
	return &tail{
		summary: summary{id: hash.id, records: int64(records), mask: int64(hash.mask)}, hash: hash,
		messages: columns.NewTable(messageHashes, messageNumbers), calls: columns.NewTable(callHashes, callNumbers),
		rows: map[Key]*tailCall{}, places: map[sought]uint32{},
	}
}

func (t *tail) add(r taken) {
	if t.first.Number == 0 {
		t.first, t.before = r.Mark, r.before
	}
	t.last = r.Mark
	switch e := r.event.(type) {
	case *callEvent:
		t.call(e, r)
	case *decisionEvent:
		t.change(e.key, r.Offset, 0, t.decided(e.decision))
	case *startedEvent:
		output := change{clear: hasOutput}
		if e.spool != "" {
			output = change{set: hasOutput}
		}
		t.change(e.key, r.Offset, 0, output)
	case *returnEvent:
		t.returned(e, r)
	case *deliveredEvent:
		t.change(e.key, r.Offset, 0, change{set: isDelivered})
	case *adoptedEvent:
		t.change(e.key, r.Offset, 0, change{})
	case *messageEvent:
		t.message(&e.m, r.Offset)
	case *earlyCancelEvent:
		t.earlyCancels = append(t.earlyCancels, earlyCancelOp{earlyCancelEvent: *e})
	case *removedEvent:
		t.begins, t.lastKey = e.stays, max(t.lastKey, Key(e.lastKey))
		t.count(e.lastSeq)
		t.earlyCancels = []earlyCancelOp{{reset: true}}
		for _, f := range e.earlyCancels {
			t.earlyCancels = append(t.earlyCancels, earlyCancelOp{earlyCancelEvent: f})
		}
	}
}

func (t *tail) count(seq int64) { t.lastSeq = max(t.lastSeq, seq) }

func (t *tail) put(seq, at int64, id, kind, otid, status string, of origin) int {
	t.count(seq)
	row := t.messages.Len()
	if row == 0 {
		t.leastSeq = seq
	}
	t.mostSeq = seq
	h := t.messages.Hashes
	h[mID], h[mType] = append(h[mID], t.hash.of(id)), append(h[mType], t.hash.of(kind))
	h[mOTID], h[mStatus] = append(h[mOTID], t.hash.of(otid)), append(h[mStatus], t.hash.of(status))
	for i, v := range of {
		h[mClient+i] = append(h[mClient+i], v)
	}
	n := t.messages.Numbers
	n[nNumber], n[nAt] = append(n[nNumber], uint64(seq)), append(n[nAt], uint64(at))
	return row
}

func (t *tail) call(e *callEvent, r taken) {
	k, c := Key(e.key), &e.call
	t.lastKey = max(t.lastKey, k)
	of := t.hash.origin(c)
	request := t.put(e.request.seq, r.Offset, e.request.id, c.MessageType, c.OTID, "", of)
	row := t.calls.Len()
	if row == 0 {
		t.least = k
	}
	t.most, t.received = k, max(t.received, r.time.UnixNano())
	id := t.hash.identity(c.identity())
	flags := uint32(t.decided(e.decision).set)
	if c.BackgroundOf != "" {
		flags |= isBackground
	}
	if len(c.Arguments) > inRecord {
		flags |= isLarge
	}
	h := t.calls.Hashes
	for i, v := range [callHashes]uint32{
		id, of[mCall-mClient], of[0], of[mAgent-mClient], of[mConversation-mClient], of[mWorkspace-mClient],
		t.hash.name(c.Tool), t.hash.of(c.Canonical), t.hash.of(e.decision.Action), t.hash.of(e.decision.By), flags,
	} {
		h[i] = append(h[i], v)
	}
	n := t.calls.Numbers
	for i, v := range [nEvents]int64{e.key, r.Offset, r.time.UnixNano()} {
		n[i] = append(n[i], uint64(v))
	}
	t.rows[k] = &tailCall{row: row, request: request}
	t.places[t.soughtAt(row)] = of[mWorkspace-mClient]
	if a := e.answer; a != nil {
		t.put(a.seq, r.Offset, a.id, returnType, a.outcome.OTID, a.outcome.Status, of)
		t.apply(row, t.ended(a))
	}
}

func (t *tail) soughtAt(row int) sought {
	h := t.calls.Hashes
	return sought{h[cIdentity][row], h[cID][row], h[cClient][row], h[cAgent][row]}
}

func (t *tail) returned(e *returnEvent, r taken) {
	var of origin
	if c := t.rows[Key(e.key)]; c != nil {
		for i := range of {
			of[i] = t.messages.Hashes[mClient+i][c.request]
		}
	}
	row := t.put(e.seq, r.Offset, e.id, returnType, e.outcome.OTID, e.outcome.Status, of)
	t.change(e.key, r.Offset, row+1, t.ended(e))
}

// message adds a message outside a call's life. It gets the workspace of its call.
func (t *tail) message(m *Message, at int64) {
	of := t.hash.origin(&Call{Client: m.Client, ID: m.CallID, Origin: m.Origin})
	id := sought{t.hash.identity(identity{m.Client, m.AgentID, m.CallID}), of[mCall-mClient], of[0], of[mAgent-mClient]}
	workspace, known := t.places[id]
	of[mWorkspace-mClient] = workspace
	row := t.put(m.Seq, at, m.ID, m.Type, m.OTID, m.Status, of)
	if m.CallID != "" && !known {
		t.loose = append(t.loose, int64(row))
	}
}

func (t *tail) decided(d Decision) change {
	c := change{decided: true, action: int64(t.hash.of(d.Action)), by: int64(t.hash.of(d.By)), clear: wasAsked}
	if d.asked() {
		c.set, c.clear = wasAsked, 0
	}
	return c
}

func (t *tail) ended(e *returnEvent) (c change) {
	if e.outcome.Decision != (Decision{}) {
		c = t.decided(e.outcome.Decision)
	}
	c.set, c.tool = c.set|hasEnded, int64(t.hash.of(e.outcome.Canonical))
	if len(e.body) > inRecord {
		c.set |= isLarge
	}
	return c
}

func (t *tail) change(key, at int64, row int, by change) {
	c := t.rows[Key(key)]
	if c == nil {
		t.foreign = append(t.foreign, foreign{key, at, int64(row), by})
		return
	}
	t.events = append(t.events, callRecord{at, c.last})
	c.last = len(t.events)
	t.apply(c.row, by)
}

func (t *tail) apply(row int, by change) {
	for _, column := range []int{cTool, cAction, cBy, cFlags} {
		t.calls.Hashes[column][row] = by.of(column, t.calls.Hashes[column][row])
	}
}

func (c *change) of(column int, was uint32) uint32 {
	switch {
	case column == cTool && c.tool != 0:
		return uint32(c.tool)
	case column == cAction && c.decided:
		return uint32(c.action)
	case column == cBy && c.decided:
		return uint32(c.by)
	case column == cFlags:
		return was&^uint32(c.clear) | uint32(c.set)
	}
	return was
}

func (c *change) and(next change) {
	if next.decided {
		c.decided, c.action, c.by = true, next.action, next.by
	}
	if next.tool != 0 {
		c.tool = next.tool
	}
	c.set, c.clear = c.set&^next.clear|next.set, c.clear&^next.set|next.clear
}
