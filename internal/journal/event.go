package journal

import (
	"bytes"
	"time"
)

// Kinds of records. The numbers are stored in the log and are never reused.
const (
	kindCall            = 1 // a call was received, with its immediate decision
	kindDecision        = 2 // the call waits, is decided or will run
	kindStarted         = 3 // it may have effects from now on; with process and output
	kindReturn          = 4
	kindDelivered       = 5  // the return was written to the client
	kindMessage         = 6  // outside a call's life
	kindEarlyCancel     = 7  // an id was cancelled before its call arrived
	kindCancelForgotten = 8  // the call of an early cancel has arrived
	kindAdopted         = 9  // a call of a dead daemon has another owner
	kindTrial           = 10 // tests whether the log can be written
	kindRemoved         = 20 // the oldest segments were removed
	kindCheckpoint      = 21 // signs all earlier records
)

type event interface{ fields(c *codec) }

func newEvent(kind byte) event {
	switch kind {
	case kindCall:
		return &callEvent{}
	case kindDecision:
		return &decisionEvent{}
	case kindStarted:
		return &startedEvent{}
	case kindReturn:
		return &returnEvent{}
	case kindDelivered:
		return &deliveredEvent{}
	case kindMessage:
		return &messageEvent{}
	case kindEarlyCancel, kindCancelForgotten:
		return &earlyCancelEvent{}
	case kindAdopted:
		return &adoptedEvent{}
	case kindTrial:
		return &trialEvent{}
	case kindRemoved:
		return &removedEvent{}
	case kindCheckpoint:
		return &checkpointEvent{}
	}
	return nil
}

// sent holds the fields of a call's message that are neither in the call nor in the record.
type sent struct {
	seq  int64
	id   string
	body []byte
}

type callEvent struct {
	key      int64
	daemon   string
	state    string
	intended bool // may run, or has executed
	decision Decision
	call     Call
	request  sent
	answer   *returnEvent // nil if the call has no return yet
}

func (e *callEvent) fields(c *codec) {
	c.number(&e.key)
	c.text(&e.daemon)
	c.text(&e.state)
	c.flag(&e.intended)
	decisionFields(c, &e.decision)
	k := &e.call
	for _, s := range []*string{
		&k.Client, &k.ID, &k.AgentID, &k.ConversationID, &k.RunID, &k.StepID, &k.OTID, &k.GroupID, &k.SenderID,
		&k.Workspace, &k.Origin.ID, &k.Dialect, &k.Tool, &k.Canonical, &k.ArgsHash, &k.BackgroundOf, &k.MessageType,
	} {
		c.text(s)
	}
	c.bytes(&k.Arguments)
	c.number(&e.request.seq)
	c.text(&e.request.id)
	around(c, &e.request.body, k.Arguments)
	answered := e.answer != nil
	if c.flag(&answered); answered {
		if c.reads {
			e.answer = &returnEvent{}
		}
		e.answer.answer(c)
	}
	if c.text(&k.Kept); answered {
		c.text(&e.answer.outcome.Output)
	}
}

// around encodes a body as the parts before and after the arguments, which it usually contains, because the record
// already has them.
func around(c *codec, body *[]byte, arguments []byte) {
	before, after, found := bytes.Cut(*body, arguments)
	found = found && len(arguments) > 0
	if !found {
		before, after = *body, nil
	}
	c.flag(&found)
	c.bytes(&before)
	c.bytes(&after)
	if !c.reads {
		return
	}
	if *body = before; found {
		*body = bytes.Join([][]byte{before, arguments, after}, nil)
	}
}

type decisionEvent struct {
	key      int64
	state    string
	decision Decision
}

func (e *decisionEvent) fields(c *codec) {
	c.number(&e.key)
	c.text(&e.state)
	decisionFields(c, &e.decision)
}

func decisionFields(c *codec, d *Decision) {
	for _, s := range []*string{&d.Action, &d.By, &d.Rule, &d.Source, &d.Reason, &d.Person, &d.Widened} {
		c.text(s)
	}
}

type startedEvent struct {
	key            int64
	at             time.Time
	process, spool string
}

func (e *startedEvent) fields(c *codec) {
	c.number(&e.key)
	c.when(&e.at)
	c.text(&e.process)
	c.text(&e.spool)
}

// returnEvent is kindReturn, and a part of kindCall.
type returnEvent struct {
	key     int64
	outcome Outcome
	sent
}

func (e *returnEvent) fields(c *codec) {
	e.answer(c)
	c.text(&e.outcome.Output)
}

// answer visits all fields except the last, which was added later: in kindCall other fields follow.
func (e *returnEvent) answer(c *codec) {
	c.number(&e.key)
	o := &e.outcome
	for _, s := range []*string{&o.Status, &o.ErrorType, &o.Signal, &o.Sandbox, &o.Canonical, &o.OTID} {
		c.text(s)
	}
	decisionFields(c, &o.Decision)
	exited, code := o.ExitCode != nil, int64(0)
	if exited {
		code = int64(*o.ExitCode)
	}
	c.flag(&exited)
	c.number(&code)
	if n := int(code); exited {
		o.ExitCode = &n
	}
	c.number(&e.seq)
	c.text(&e.id)
	c.bytes(&e.body)
}

type deliveredEvent struct {
	key int64
	at  time.Time // the record is written later than this
}

func (e *deliveredEvent) fields(c *codec) {
	c.number(&e.key)
	c.when(&e.at)
}

type messageEvent struct{ m Message }

func (e *messageEvent) fields(c *codec) {
	m := &e.m
	c.number(&m.Seq)
	c.when(&m.Time)
	for _, s := range []*string{
		&m.ID, &m.Type, &m.Direction, &m.Client, &m.AgentID, &m.ConversationID, &m.RunID, &m.StepID, &m.OTID,
		&m.GroupID, &m.SenderID, &m.CallID, &m.Status,
	} {
		c.text(s)
	}
	c.bytes(&m.Body)
}

// earlyCancelEvent is kindEarlyCancel or, if most is zero, kindCancelForgotten.
type earlyCancelEvent struct {
	client, id string // id: see Journal.EarlyCancelName
	most       int64  // how many early cancels of the client are kept, the latest ones
}

func (e *earlyCancelEvent) fields(c *codec) {
	c.text(&e.client)
	c.text(&e.id)
	c.number(&e.most)
}

type adoptedEvent struct {
	key int64
	by  string // daemon
}

func (e *adoptedEvent) fields(c *codec) {
	c.number(&e.key)
	c.text(&e.by)
}

type trialEvent struct{}

func (*trialEvent) fields(*codec) {}

// removedEvent is kindRemoved. It repeats the state that was recorded in the removed segments.
type removedEvent struct {
	stays            int64 // first remaining segment
	lastKey, lastSeq int64
	earlyCancels     []earlyCancelEvent // oldest of a client first
}

func (e *removedEvent) fields(c *codec) {
	for _, n := range []*int64{&e.stays, &e.lastKey, &e.lastSeq} {
		c.number(n)
	}
	listOf(c, &e.earlyCancels, func(f *earlyCancelEvent) { f.fields(c) })
}
