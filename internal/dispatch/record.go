package dispatch

import (
	"go.uber.org/zap"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
)

// journalled is the call as it is written down before anything else happens.
func (d *Dispatcher) journalled(c *Call) journal.Call {
	var of, root string
	if c.of != nil {
		of = c.of.ID
	}
	if c.workspace != nil {
		root = c.workspace.opt.Root
	}
	return journal.Call{
		Client: c.client, ID: c.ID, BackgroundOf: of,
		AgentID: c.req.AgentID, ConversationID: c.req.ConversationID, RunID: c.req.RunID, StepID: c.req.StepID,
		GroupID: c.req.GroupID, SenderID: c.req.SenderID, Workspace: root,
		OTID: c.req.OTID, RequestID: c.req.ID, Dialect: string(c.Dialect),
		Tool: c.asked.Name, Canonical: c.tool, Arguments: c.asked.Arguments, ArgsHash: c.hash,
		MessageType: "approval_request_message", Message: c.recordedRequest(),
	}
}

func (c *Call) message(kind string, d journal.Direction, body []byte) journal.Message {
	return journal.Message{
		Type: kind, Direction: d, Client: c.client, CallID: c.ID, Body: body,
		AgentID: c.req.AgentID, ConversationID: c.req.ConversationID, RunID: c.req.RunID, StepID: c.req.StepID,
		GroupID: c.req.GroupID, SenderID: c.req.SenderID,
	}
}

// recordedRequest is the request as list_messages shows it: one call in any dialect.
func (c *Call) recordedRequest() []byte {
	from := c.req.Origin
	from.ID = "" // the journal gives it one
	body, err := message.Encode(struct {
		message.Origin
		ToolCall any `json:"tool_call"`
	}{from, c.asked.Shown()})
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
		if err != nil { // cannot happen: it is made of texts
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
	return o
}

// Delivered records that a call's return was written to a client. It is told
// once per client that got it.
func (d *Dispatcher) Delivered(c *Call) {
	if c.rec == 0 {
		return
	}
	d.opt.Journal.Delivered(c.rec, func(err error) {
		d.opt.Log.Warn("cannot journal a delivery", zap.String("call", c.ID), zap.Error(err))
	})
}

func building(ret message.ToolReturn) journal.Builder {
	encoded := ret.Encode()
	return func(seq int64) (string, []byte, error) { return ret.ID, encoded.Record(seq), nil }
}
