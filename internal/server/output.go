package server

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
	"github.com/toold/toold/tools"
)

const outputBytes = 1 << 20

func (ss *session) getOutput(m *message.GetOutput) {
	if !ss.may("read output", m.CallID, Agent, Observer, Approver, Admin) {
		return
	}
	answer, e := ss.output(m)
	ss.answered(answer, e)
}

func (ss *session) answered(answer any, e *message.Error) {
	if e != nil {
		answer = e
	}
	ss.reply(answer)
}

func (ss *session) output(m *message.GetOutput) (*message.Output, *message.Error) {
	rec, e := ss.recording(m)
	if e != nil {
		return nil, e
	}
	s := stream(m.Stream)
	if total := rec.Total(s); m.Offset > total {
		return nil, message.InvalidArguments.Errorf("offset %d is beyond the end: %s has %d bytes; ask from the next_offset of the last answer", m.Offset, m.Stream, total)
	}
	most := outputBytes
	if m.Limit > 0 && m.Limit < outputBytes {
		most = int(m.Limit)
	}
	p, from, eof := rec.ReadAt(s, m.Offset, most)
	answer := &message.Output{
		MessageType: "output", RequestID: m.RequestID, CallID: m.CallID, Stream: m.Stream,
		Offset: from, NextOffset: from + int64(len(p)), EOF: eof,
	}
	if from > m.Offset {
		answer.Gap = &message.Gap{From: m.Offset, To: from}
	} else if total := rec.Total(s); eof && answer.NextOffset < total {
		answer.Gap = &message.Gap{From: answer.NextOffset, To: total}
	}
	if utf8.Valid(p) {
		text := string(p)
		answer.Data = &text
	} else {
		answer.DataB64 = base64.StdEncoding.EncodeToString(p)
	}
	return answer, nil
}

func (ss *session) recording(m *message.GetOutput) (dispatch.Recording, *message.Error) {
	live := ss.named(ss.client(), m.CallID, m.AgentID)
	rec, e := ss.record(m, live)
	switch {
	case e != nil:
		return nil, e
	case len(live) == 0:
		return ss.srv.opt.Dispatch.OpenRecording(rec)
	}
	for _, c := range live {
		if rec := c.Recording(); rec != nil {
			return rec, nil
		}
	}
	return nil, message.NotRunning.Errorf("this call has not begun to run, so it has no output yet; ask again when tool_started has come")
}

// record finds the latest ended call, unless a live call has the id. For a token that sees only its own calls, an id
// that several agents used is ambiguous, unless the connection follows one of the calls.
func (ss *session) record(m *message.GetOutput, live []*dispatch.Call) (rec journal.Record, e *message.Error) {
	agents := map[string]bool{}
	for _, c := range live {
		agents[c.Key().Agent] = true
	}
	most := 2
	if ss.client() == "" || slices.ContainsFunc(live, ss.follows) {
		most = 1
	}
	for len(agents) < most {
		found, err := ss.srv.opt.Journal.FindFunc(context.Background(), m.CallID, func(c *journal.Call) bool {
			return !agents[c.AgentID] && ss.mayMean(m, c)
		})
		switch {
		case errors.Is(err, journal.ErrNotFound) && len(agents) > 0:
			return rec, nil
		case errors.Is(err, journal.ErrNotFound):
			return rec, message.NotFound.Errorf("no call of yours has this tool_call_id; each command of a shell_call that has ended has its own, which ends in #1, #2 and so on")
		case err != nil:
			return rec, message.InternalError.Errorf("the journal cannot be read: %v", err)
		case len(agents) == 0:
			rec = found
		}
		agents[found.AgentID] = true
	}
	if len(agents) > 1 && ss.client() != "" {
		return rec, message.InvalidArguments.Errorf("calls of several agents have this tool_call_id; add the agent_id of the one that is meant")
	}
	return rec, nil
}

// mayMean reports whether a frame may refer to c, by client and agent.
func (ss *session) mayMean(m *message.GetOutput, c *journal.Call) bool {
	own := ss.client() == "" || c.Client == ss.client()
	return own && (m.AgentID == nil || c.AgentID == *m.AgentID)
}

func stream(name string) tools.Stream {
	switch name {
	case "stderr":
		return tools.Stderr
	case "combined":
		return tools.Combined
	default:
		return tools.Stdout
	}
}

func (ss *session) listCalls(m *message.ListCalls) {
	if !ss.may("list calls", "", Agent, Observer, Approver, Admin) {
		return
	}
	list, err := ss.srv.opt.Dispatch.List(context.Background(), ss.client(), m.CallID, m.All)
	if err != nil {
		ss.refuse(message.InternalError, "", fmt.Sprint(err))
		return
	}
	ss.reply(m.Answer(list))
}
