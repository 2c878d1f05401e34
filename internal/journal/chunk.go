package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/toold/toold/internal/journal/chain"
)

// A chunk indexes consecutive records of one segment. It depends only on these records, so all processes create
// identical chunks. Changes to calls of earlier chunks are listed in foreign.
const (
	chunkForm    = 1
	chunkRecords = 16 << 10
)

// Tables of a chunk.
const (
	messageRows = iota
	callRows
	eventRows // positions of the records that changed the chunk's calls
)

// Columns of messages: hashes, and numbers.
const (
	mID = iota
	mType
	mOTID
	mStatus
	mClient // from here on, fields of the call
	mAgent
	mConversation
	mRun
	mStep
	mGroup
	mSender
	mCall
	mWorkspace
	messageHashes

	nNumber = 0 // of the message or call
	nAt     = 1 // offset of the record

	messageNumbers = 2
)

const originHashes = messageHashes - mClient

type origin [originHashes]uint32

// Columns of calls, beside nNumber and nAt.
const (
	cIdentity = iota
	cID
	cClient
	cAgent
	cConversation
	cWorkspace
	cName
	cTool
	cAction
	cBy
	cFlags
	callHashes

	nReceived = 2
	nEvents   = 3 // end of the call's rows in eventRows

	callNumbers = 4
)

// Flags of a call.
const (
	isBackground = 1 << iota
	hasEnded
	isDelivered
	hasOutput
	isLarge // some text is a blob
	wasAsked
	allFlags
)

// hasher returns 32-bit hashes that clients cannot predict. Collisions only cost time.
type hasher struct {
	id   chain.ID
	mask uint32 // if not 0, the bits kept, to test collisions
}

// of returns the hash of some texts, 0 for one empty text.
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

// name returns the hash of a tool's name. All names above longName share one hash.
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

// summary is the header of a chunk file, read when a journal is opened.
type summary struct {
	id           chain.ID
	records      int64 // maximum in a chunk
	mask         int64
	first, last  chain.Mark
	before       chain.Hash // hash of the record before first
	numbers                 // values after the last record
	least, most  Key
	leastSeq     int64
	mostSeq      int64
	received     int64 // latest time of receipt
	open         []int64
	foreign      []foreign
	loose        []int64 // rows of messages outside a call's life whose call is in another chunk
	earlyCancels []earlyCancelOp
}

// foreign is a record that changes a call of an earlier chunk.
type foreign struct {
	key, at int64
	row     int64 // row of its message plus one; 0 = none
	change
}

// change lists new values in the columns of a call.
type change struct {
	decided          bool
	tool, action, by int64 // hashes; tool 0 = unchanged
	set, clear       int64
}

type earlyCancelOp struct {
	earlyCancelEvent
	reset bool // forget all earlier values
}

func (s *summary) fields(c *codec) {
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
		c.flag(&f.decided)
		for _, n := range []*int64{&f.key, &f.at, &f.row, &f.tool, &f.action, &f.by, &f.set, &f.clear} {
			c.number(n)
		}
	})
	listOf(c, &s.earlyCancels, func(f *earlyCancelOp) {
		c.flag(&f.reset)
		f.earlyCancelEvent.fields(c)
	})
	if form != chunkForm || s.records < 1 {
		s.id = chain.ID{} // matches no log
	}
}

func markFields(c *codec, m *chain.Mark) {
	number, segment := int64(m.Number), int64(m.Segment)
	c.number(&number)
	c.number(&segment)
	c.number(&m.Offset)
	m.Number, m.Segment = uint64(number), uint32(segment)
	hashField(c, &m.Hash)
}

func hashField(c *codec, h *chain.Hash) {
	p := h[:]
	c.bytes(&p)
	copy(h[:], p)
}

func listOf[T any](c *codec, list *[]T, field func(*T)) {
	n := int64(len(*list))
	c.number(&n)
	for i := range n {
		if c.reads {
			if len(c.p) == 0 || c.err != nil {
				c.err = errCutOff
				return
			}
			*list = append(*list, *new(T))
		}
		field(&(*list)[i])
	}
}

func (s *summary) chunkName() string {
	return fmt.Sprintf("%08d-%012d.columns", s.first.Segment, s.first.Number/uint64(s.records))
}

func (s *summary) has(m chain.Mark) bool {
	records := uint64(s.records)
	return m.Segment == s.first.Segment && m.Number/records == s.first.Number/records
}
