package dispatch

import (
	"go.uber.org/zap"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/spool"
)

func (d *Dispatcher) journalled(c *Call) journal.Call {
	var of, root string
	if c.of != nil {
		of = c.of.ID
	}
	if c.workspace != nil {
		root = c.workspace.opt.Root
	}
	return journal.Call{
		Client: c.client, ID: c.ID, Origin: c.req.Origin, BackgroundOf: of, Workspace: root, Dialect: string(c.Dialect),
		Tool: c.asked.Name, Canonical: c.tool, Arguments: c.asked.Arguments, ArgsHash: c.argsHash(),
		MessageType: "approval_request_message", Message: c.recordedRequest(),
	}
}

// message returns a message about a call, without an id and otid.
func (c *Call) message(kind, direction string, body []byte) journal.Message {
	m := journal.Message{Type: kind, Direction: direction, Client: c.client, CallID: c.ID, Origin: c.req.Origin, Body: body}
	m.ID, m.OTID = "", ""
	return m
}

func (c *Call) recordedRequest() []byte {
	from := c.req.Origin
	from.ID = ""
	body, err := c.asked.Recorded(from)
	if err != nil {
		return []byte("{}")
	}
	return body
}

func journalDecision(d *message.Decision) journal.Decision {
	if d == nil {
		return journal.Decision{}
	}
	j := journal.Decision{Action: d.Action, By: d.By, Rule: d.Rule, Source: d.Source, Reason: d.Reason, Person: d.Person}
	if d.Widened != nil {
		text, err := message.Encode(d.Widened)
		if err != nil {
			text = []byte(`"?"`)
		}
		j.Widened = string(text)
	}
	return j
}

func journalOutcome(ret message.ToolReturn, out outcome) journal.Outcome {
	o := journal.Outcome{Status: ret.Status, ExitCode: ret.ExitCode, OTID: ret.OTID, Decision: journalDecision(out.decision)}
	if ret.ErrorType != nil {
		o.ErrorType = string(*ret.ErrorType)
	}
	if ret.Signal != nil {
		o.Signal = *ret.Signal
	}
	if ret.Sandbox != nil {
		if held, err := message.Encode(ret.Sandbox); err == nil {
			o.Sandbox = string(held)
		}
	}
	if out.capture != nil {
		o.Output = out.capture.Sum()
	}
	return o
}

// Delivered records that a call's return was written to a client. It does not block.
func (d *Dispatcher) Delivered(c *Call) {
	if c.rec == 0 {
		return
	}
	d.opt.Journal.Delivered(c.rec, func(err error) {
		d.opt.Log.Warn("cannot journal a delivery", zap.String("call", c.ID), zap.Error(err))
	})
}

func building(ret message.ToolReturn) journal.Builder {
	record, err := ret.Recorder()
	return func(seq int64) (string, []byte, error) {
		if err != nil {
			return "", nil, err
		}
		return ret.ID, record(seq), nil
	}
}

// Recording is a call's output, live or from its files.
type Recording interface {
	// ReadAt reads up to most bytes from an offset or, if that is no longer kept, from the next kept one. eof means
	// that no more bytes follow.
	ReadAt(s tools.Stream, offset int64, most int) (p []byte, from int64, eof bool)
	// Total returns the stream's size so far, including bytes that are no longer kept.
	Total(s tools.Stream) int64
}

// Recording returns the output so far, or nil before the call runs.
func (c *Call) Recording() Recording {
	if capture := c.Capture(); capture != nil {
		return running{capture}
	}
	return nil
}

// OpenRecording opens the recorded output of an answered call.
func (d *Dispatcher) OpenRecording(rec journal.Record) (Recording, *message.Error) {
	if rec.SpoolDir == "" {
		return nil, message.NotFound.Errorf("this call started no command, so it left no output; its answer is in its return")
	}
	e := &past{}
	if ret, err := message.Record(rec.Result).Return(); err == nil {
		e.totals = [2]int64{ret.StdoutBytes, ret.StderrBytes}
	}
	if e.totals == [2]int64{} && rec.ErrorType != string(message.UnknownAfterCrash) {
		return e, nil
	}
	if rec.Output == "" {
		return nil, message.NotFound.Errorf("the record has no sum of this call's output, so what is kept of it cannot be trusted and is not shown; its return holds the head and the tail")
	}
	kept, err := spool.Open(d.spoolDir(rec.Key))
	if err != nil || rec.Output == spool.Nothing() {
		return nil, message.NotFound.Errorf("the output of this call is not kept any more (limits.spool_keep, limits.state_bytes); its return holds the head and the tail")
	}
	e.spool = kept
	return e, nil
}

type running struct{ *spool.Capture }

func (r running) Total(s tools.Stream) int64 {
	stdout, stderr, _ := r.Totals()
	return [...]int64{stdout, stderr, stdout + stderr}[s]
}

type past struct {
	spool  *spool.Spool // nil if the call printed nothing
	totals [2]int64     // from the return; zero if unknown
}

func (e *past) ReadAt(s tools.Stream, offset int64, most int) (p []byte, from int64, eof bool) {
	if e.spool == nil {
		return nil, offset, true
	}
	p, _ = e.spool.ReadAt(s, offset, most)
	return p, offset, offset+int64(len(p)) >= e.spool.Size(s)
}

// Total returns the size in the return or, if larger, that of the files, for instance after a crash.
func (e *past) Total(s tools.Stream) int64 {
	counted := [...]int64{e.totals[0], e.totals[1], e.totals[0] + e.totals[1]}[s]
	if e.spool == nil {
		return counted
	}
	return max(counted, e.spool.Size(s))
}
