package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

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

// recordedRequest is the request as list_messages shows it: one call, whatever
// the dialect and the batch it came in.
func (c *Call) recordedRequest() []byte {
	body, err := message.Encode(struct {
		OTID           string               `json:"otid,omitempty"`
		RunID          string               `json:"run_id,omitempty"`
		StepID         string               `json:"step_id,omitempty"`
		AgentID        string               `json:"agent_id,omitempty"`
		ConversationID string               `json:"conversation_id,omitempty"`
		GroupID        string               `json:"group_id,omitempty"`
		SenderID       string               `json:"sender_id,omitempty"`
		ToolCall       message.ApprovalCall `json:"tool_call"`
	}{c.req.OTID, c.req.RunID, c.req.StepID, c.req.AgentID, c.req.ConversationID, c.req.GroupID, c.req.SenderID, message.ApprovalCall{
		ToolCallID: c.ID, ToolName: c.asked.Name, Name: c.asked.Name, Arguments: shownArguments(c.asked.Arguments),
	}})
	if err != nil {
		return []byte("{}")
	}
	return body
}

// shownArguments is the arguments as they may stand in a frame: the value as it
// came when it is JSON, else its text as a JSON string. A reader that parses
// arguments must not be given what cannot be parsed.
func shownArguments(raw json.RawMessage) json.RawMessage {
	if json.Valid(raw) {
		return raw
	}
	text, err := message.Encode(string(raw))
	if err != nil {
		return json.RawMessage("null")
	}
	return text
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

// Recover takes up what the journal has of earlier daemons: what was cancelled
// before it came, and the calls that a crashed daemon left open. What of these still
// runs is killed, and each gets its one return, to be had by repeating its id.
// It is called once, before any call is submitted.
func (d *Dispatcher) Recover(ctx context.Context) error {
	d.mu.Lock()
	d.fences = d.opt.Journal.Fences()
	d.mu.Unlock()
	open, err := d.opt.Journal.Unfinished()
	if err != nil {
		return fmt.Errorf("cannot read the calls left by the last run: %w", err)
	}
	for _, rec := range open {
		killed := false
		if rec.Process != "" {
			if killed, err = d.opt.Kill(rec.Process); err != nil {
				d.opt.Log.Error("cannot end a process left by the last run", zap.String("call", rec.ID), zap.Error(err))
			}
		}
		d.findOutput(rec)
		if err := d.recover(ctx, rec); err != nil {
			return fmt.Errorf("cannot answer a call left by the last run: %w", err)
		}
		d.opt.Log.Info("answered a call left by the last run", zap.String("call", rec.ID), zap.String("state", string(rec.State)), zap.Bool("killed", killed))
	}
	return nil
}

// findOutput records where the output of a call is that ran so shortly before the
// crash that this was not written any more.
func (d *Dispatcher) findOutput(rec journal.Record) {
	dir := d.spoolDir(rec.Key)
	if _, err := os.Stat(dir); err != nil || rec.IntendedAt.IsZero() || rec.SpoolDir != "" {
		return
	}
	d.keepOutput(rec.Key, rec.Process, dir)
}

// recover gives one call of a crashed daemon its return.
func (d *Dispatcher) recover(ctx context.Context, rec journal.Record) error {
	r := refusal{message.Shutdown, "toold was stopped before this call ran; nothing of it ran. Send it again under a new id"}
	if !rec.IntendedAt.IsZero() {
		r = refusal{message.UnknownAfterCrash, "toold was killed while this call ran; how far it got is not known, and nothing of it runs any more. Look at what it changed before you send it again under a new id"}
	}
	ret := message.NewToolReturn(message.ReturnOptions{
		CallID: rec.ID, ToolName: rec.Tool, RunID: rec.RunID, StepID: rec.StepID, ErrorType: r.kind, Result: "Error: " + r.text,
	})
	_, err := d.opt.Journal.Finish(ctx, rec.Key, journalOutcome(ret, outcome{}), building(ret))
	return err
}

// building makes the body of a return.
func building(ret message.ToolReturn) journal.Builder {
	encoded := ret.Encode()
	return func(seq int64) (string, []byte, error) { return ret.ID, encoded.Record(seq), nil }
}
