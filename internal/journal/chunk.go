package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/journal/columns"
)

// A chunk is what the index has of some records of one segment, which follow each other. It is
// made of these records alone, so that whoever makes it makes the same. What they say of calls
// that were received before is thus apart, as elsewhere.
const (
	chunkForm    = 1
	chunkRecords = 16 << 10
)

// The tables of a chunk.
const (
	messageRows = iota
	callRows
	eventRows // where the records are that changed the calls of the chunk
)

// The columns of messages: hashes, and numbers.
const (
	mID = iota
	mType
	mOTID
	mStatus
	mClient // from here on, those of its call
	mAgent
	mConversation
	mRun
	mStep
	mGroup
	mSender
	mCall
	mWorkspace
	messageHashes

	nNumber = 0 // of the message, or the call
	nAt     = 1 // the offset of its record

	messageNumbers = 2
)

// originHashes are those that a return has of its call.
const originHashes = messageHashes - mClient

type origin [originHashes]uint32

// The columns of calls, which have nNumber and nAt, too.
const (
	cIdentity = iota
	cID
	cClient
	cAgent
	cConversation
	cWorkspace
	cName // as it was asked
	cTool
	cAction
	cBy
	cFlags
	callHashes

	nReceived = 2
	nEvents   = 3 // how many rows of events this call and those before it have

	callNumbers = 4
)

// The flags of a call.
const (
	isBackground = 1 << iota
	hasEnded
	isDelivered
	hasOutput
	isLarge // some of its texts is beside the log
	wasAsked
	allFlags
)

// hasher makes the hashes of a journal, which others cannot foresee: what has the same hash as
// something else only costs time.
type hasher struct {
	id   chain.ID
	mask uint32 // of the bits that are left, if not 0: for tests of what has the same hash
}

// of is the hash of some texts, 0 for an empty one.
func (h hasher) of(texts ...string) uint32 {
	if len(texts) == 1 && texts[0] == "" {
		return 0
	}
	p := append(make([]byte, 0, 256), h.id[:]...)
	for _, t := range texts {
		p = binary.AppendUvarint(p, uint64(len(t)))
		p = append(p, t...)
	}
	sum := sha256.Sum256(p)
	v := binary.BigEndian.Uint32(sum[:])
	if h.mask != 0 {
		v &= h.mask
	}
	return max(v, 1)
}

func (h hasher) identity(id identity) uint32 { return h.of(id.client, id.agent, id.id) }

// name is the hash of the name of a tool; one for all long ones.
func (h hasher) name(tool string) uint32 {
	if len(tool) > longName {
		return 1
	}
	return h.of(tool)
}

const longName = 64

func (h hasher) origin(c *Call) origin {
	return origin{
		h.of(c.Client), h.of(c.AgentID), h.of(c.ConversationID), h.of(c.RunID), h.of(c.StepID), h.of(c.GroupID), h.of(c.SenderID),
		h.of(c.ID), h.of(c.Workspace),
	}
}

// summary is what a chunk says at once. It is read when a journal is opened.
type summary struct {
	id          chain.ID
	records     int64 // so many has a chunk, at most
	mask        int64 // that of hasher
	first, last chain.Mark
	before      chain.Hash // of the record before the first
	numbers                // as far as its records say them
	least, most Key        // of its calls
	leastSeq    int64
	mostSeq     int64
	received    int64 // when the last of its calls was
	open        []int64
	foreign     []foreign
	loose       []int64   // rows of messages of no call's life, whose call is not in the chunk
	fences      []fenceOp // in their order
}

// foreign is a record of a chunk that changes a call received before.
type foreign struct {
	key, at int64
	row     int64 // of its message, and one more; 0 = none
	change
}

// change is what a record changes in the columns of its call.
type change struct {
	decided          bool
	tool, action, by int64 // hashes; tool is 0 when it stays
	set, clear       int64 // flags
}

type fenceOp struct {
	fenceEvent
	reset bool // all before is forgotten
}

func (s *summary) fields(c codec) {
	form, id := int64(chunkForm), s.id[:]
	c.number(&form)
	c.bytes(&id)
	copy(s.id[:], id)
	markFields(c, &s.first)
	markFields(c, &s.last)
	hashField(c, &s.before)
	for _, n := range []*int64{
		&s.records, &s.mask, (*int64)(&s.lastKey), &s.lastSeq, &s.begins, (*int64)(&s.least), (*int64)(&s.most), &s.leastSeq, &s.mostSeq, &s.received,
	} {
		c.number(n)
	}
	listOf(c, &s.open, func(k *int64) { c.number(k) })
	listOf(c, &s.loose, func(row *int64) { c.number(row) })
	listOf(c, &s.foreign, func(f *foreign) {
		flag(c, &f.decided)
		for _, n := range []*int64{&f.key, &f.at, &f.row, &f.tool, &f.action, &f.by, &f.set, &f.clear} {
			c.number(n)
		}
	})
	listOf(c, &s.fences, func(f *fenceOp) {
		flag(c, &f.reset)
		f.fenceEvent.fields(c)
	})
	if form != chunkForm || s.records < 1 {
		s.id = chain.ID{} // no log's
	}
}

func markFields(c codec, m *chain.Mark) {
	number, segment := int64(m.Number), int64(m.Segment)
	c.number(&number)
	c.number(&segment)
	c.number(&m.Offset)
	m.Number, m.Segment = uint64(number), uint32(segment)
	hashField(c, &m.Hash)
}

func hashField(c codec, h *chain.Hash) {
	p := h[:]
	c.bytes(&p)
	copy(h[:], p)
}

func listOf[T any](c codec, list *[]T, field func(*T)) {
	n := int64(len(*list))
	c.number(&n)
	d, reads := c.(*decoder)
	for i := range n {
		if reads {
			if len(d.p) == 0 || d.err != nil {
				d.err = errCutOff
				return
			}
			*list = append(*list, *new(T))
		}
		field(&(*list)[i])
	}
}

// chunkName is that of the file of a chunk.
func (s *summary) chunkName() string {
	return fmt.Sprintf("%08d-%012d.columns", s.first.Segment, s.first.Number/uint64(s.records))
}

// has reports whether a record belongs to the chunk of which there are some already.
func (s *summary) has(m chain.Mark) bool {
	records := uint64(s.records)
	return m.Segment == s.first.Segment && m.Number/records == s.first.Number/records
}

// taken is a record as an index takes it up.
type taken struct {
	event
	chain.Mark
	before chain.Hash
	time   time.Time
}

// tail is a chunk that is being made.
type tail struct {
	summary
	hash            hasher
	messages, calls columns.Table
	events          []callRecord
	flat            columns.Table // events as in a file, when it is sealed
	rows            map[Key]*tailCall
	places          map[sought]uint32 // the workspaces of calls
}

// sought is the identity of a call as a chunk has it.
type sought [4]uint32

// tailCall is where a tail has what is known of a call.
type tailCall struct {
	row, request int // of calls, and of its message
	last         int // of events, and one more
}

// callRecord is a record of a call, and the one before.
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

// add takes up a record that follows the last one.
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
	case *fenceEvent:
		t.fences = append(t.fences, fenceOp{fenceEvent: *e})
	case *removedEvent:
		t.begins, t.lastKey = e.stays, max(t.lastKey, Key(e.lastKey))
		t.count(e.lastSeq)
		t.fences = []fenceOp{{reset: true}}
		for _, f := range e.fences {
			t.fences = append(t.fences, fenceOp{fenceEvent: f})
		}
	}
}

func (t *tail) count(seq int64) { t.lastSeq = max(t.lastSeq, seq) }

// put appends a message, and returns its row.
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
	request := t.put(e.request.Seq, r.Offset, e.request.ID, c.MessageType, c.OTID, "", of)
	row := t.calls.Len()
	if row == 0 {
		t.least = k
	}
	t.most, t.received = k, max(t.received, r.time.UnixNano())
	id := t.hash.identity(identity{c.Client, c.AgentID, c.ID})
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
	if e.answered {
		t.put(e.answer.seq, r.Offset, e.answer.id, returnType, e.answer.outcome.OTID, e.answer.outcome.Status, of)
		t.apply(row, t.ended(&e.answer))
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

// message takes up one of no call's life. It is in the workspace of its call.
func (t *tail) message(m *Message, at int64) {
	c := Call{
		Client: m.Client, AgentID: m.AgentID, ConversationID: m.ConversationID, RunID: m.RunID, StepID: m.StepID, GroupID: m.GroupID, SenderID: m.SenderID, ID: m.CallID,
	}
	of := t.hash.origin(&c)
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

// change takes up a record that changes a call.
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

// of is the hash in a column of a call that was another one before.
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

// and adds a later change.
func (c *change) and(next change) {
	if next.decided {
		c.decided, c.action, c.by = true, next.action, next.by
	}
	if next.tool != 0 {
		c.tool = next.tool
	}
	c.set, c.clear = c.set&^next.clear|next.set, c.clear&^next.set|next.clear
}
