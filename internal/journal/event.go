package journal

import (
	"bytes"
	"time"
)

// The kinds of records in the log. The numbers are those in the files: they are never used
// again for something else.
const (
	kindCall       = 1  // a call was received, with what was decided of it at once
	kindDecision   = 2  // of a call: that it waits, that it may run, or the intent to run it
	kindStarted    = 3  // it may have effects from here on; its process and its output
	kindReturn     = 4  // of a call
	kindDelivered  = 5  // that return was written to its client
	kindMessage    = 6  // a message of no call's life
	kindFence      = 7  // an id was cancelled before its call came
	kindUnfence    = 8  // its call has come
	kindAdopted    = 9  // the open call of a dead daemon became that of another
	kindTrial      = 10 // nothing: it was tried whether the log can be written again
	kindRemoved    = 20 // the oldest part of the log is removed
	kindCheckpoint = 21 // the records before are signed
)

type event interface{ fields(c codec) }

// newEvent is an empty event of a kind; nil for one that this program does not know.
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
	case kindFence, kindUnfence:
		return &fenceEvent{}
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

// callEvent is kindCall. The request is listed as a message.
type callEvent struct {
	key      int64
	daemon   string
	state    string
	intended bool // it may run, or has run
	decision Decision
	call     Call
	request  Message
	answered bool
	answer   returnEvent // when answered
}

func (e *callEvent) fields(c codec) {
	c.number(&e.key)
	c.text(&e.daemon)
	c.text(&e.state)
	flag(c, &e.intended)
	decisionFields(c, &e.decision)
	k := &e.call
	for _, s := range []*string{
		&k.Client, &k.ID, &k.AgentID, &k.ConversationID, &k.RunID, &k.StepID, &k.OTID, &k.GroupID, &k.SenderID,
		&k.Workspace, &k.RequestID, &k.Dialect, &k.Tool, &k.Canonical, &k.ArgsHash, &k.BackgroundOf, &k.MessageType,
	} {
		c.text(s)
	}
	c.bytes(&k.Arguments)
	c.number(&e.request.Seq)
	c.text(&e.request.ID)
	around(c, &e.request.Body, k.Arguments)
	if flag(c, &e.answered); e.answered {
		e.answer.answer(c)
	}
	if c.text(&k.Kept); e.answered {
		c.text(&e.answer.outcome.Output)
	}
}

// around is a body that mostly contains the arguments, which are in the record already: it
// is kept as what comes before and after them.
func around(c codec, body *[]byte, arguments []byte) {
	before, after, found := bytes.Cut(*body, arguments)
	found = found && len(arguments) > 0
	if !found {
		before, after = *body, nil
	}
	flag(c, &found)
	c.bytes(&before)
	c.bytes(&after)
	if _, reads := c.(*decoder); !reads {
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

func (e *decisionEvent) fields(c codec) {
	c.number(&e.key)
	c.text(&e.state)
	decisionFields(c, &e.decision)
}

func decisionFields(c codec, d *Decision) {
	for _, s := range []*string{&d.Action, &d.By, &d.Rule, &d.Source, &d.Reason, &d.Person, &d.Widened} {
		c.text(s)
	}
}

type startedEvent struct {
	key            int64
	at             time.Time
	process, spool string
}

func (e *startedEvent) fields(c codec) {
	c.number(&e.key)
	c.when(&e.at)
	c.text(&e.process)
	c.text(&e.spool)
}

// returnEvent is kindReturn, and a part of kindCall. Its message has the time of the
// record and, but for what is here, the fields of the call.
type returnEvent struct {
	key     int64
	outcome Outcome
	seq     int64
	id      string
	body    []byte
}

func (e *returnEvent) fields(c codec) {
	e.answer(c)
	c.text(&e.outcome.Output)
}

// answer is fields without the one that was added last, so that what follows it in kindCall is read
// as it was written.
func (e *returnEvent) answer(c codec) {
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
	flag(c, &exited)
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
	at  time.Time // the record is made later
}

func (e *deliveredEvent) fields(c codec) {
	c.number(&e.key)
	c.when(&e.at)
}

type messageEvent struct{ m Message }

func (e *messageEvent) fields(c codec) {
	m := &e.m
	direction := string(m.Direction)
	c.number(&m.Seq)
	c.when(&m.Time)
	for _, s := range []*string{
		&m.ID, &m.Type, &direction, &m.Client, &m.AgentID, &m.ConversationID, &m.RunID, &m.StepID, &m.OTID,
		&m.GroupID, &m.SenderID, &m.CallID, &m.Status,
	} {
		c.text(s)
	}
	m.Direction = Direction(direction)
	c.bytes(&m.Body)
}

// fenceEvent is kindFence, and with most zero kindUnfence.
type fenceEvent struct {
	client, id string
	most       int64 // so many of the client are kept, the latest
}

func (e *fenceEvent) fields(c codec) {
	c.text(&e.client)
	c.text(&e.id)
	c.number(&e.most)
}

type adoptedEvent struct {
	key int64
	by  string // a daemon
}

func (e *adoptedEvent) fields(c codec) {
	c.number(&e.key)
	c.text(&e.by)
}

type trialEvent struct{}

func (*trialEvent) fields(codec) {}

// removedEvent is kindRemoved: the calls and messages of the segments that go are known no
// more, and what is to be known without them.
type removedEvent struct {
	stays            int64 // the first segment that stays
	lastKey, lastSeq int64
	fences           []fenceEvent // the oldest of a client first
}

func (e *removedEvent) fields(c codec) {
	for _, n := range []*int64{&e.stays, &e.lastKey, &e.lastSeq} {
		c.number(n)
	}
	n := int64(len(e.fences))
	c.number(&n)
	for i := range n {
		if int(i) == len(e.fences) {
			e.fences = append(e.fences, fenceEvent{})
		}
		f := &e.fences[i]
		if f.fields(c); f.id == "" {
			break // no fence: it is cut off
		}
	}
}

func flag(c codec, is *bool) {
	n := int64(0)
	if *is {
		n = 1
	}
	c.number(&n)
	*is = n != 0
}
