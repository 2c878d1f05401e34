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

// recording finds the output of a call. To an agent, an id that several agents have used names none of their calls.
func (ss *session) recording(m *message.GetOutput) (dispatch.Recording, *message.Error) {
	visible := func(agent string) bool { return m.AgentID == nil || agent == *m.AgentID }
	live := slices.DeleteFunc(ss.named(ss.client(), m.CallID), func(c *dispatch.Call) bool { return !visible(c.Key().Agent) })
	agents := map[string]bool{}
	for _, c := range live {
		agents[c.Key().Agent] = true
	}
	// record finds the latest call of an agent that is not in agents yet.
	record := func() (journal.Record, error) {
		rec, err := ss.srv.opt.Journal.FindFunc(context.Background(), m.CallID, func(c *journal.Call) bool {
			own := ss.client() == "" || c.Client == ss.client()
			return own && visible(c.AgentID) && !agents[c.AgentID]
		})
		if err == nil {
			agents[rec.AgentID] = true
		}
		return rec, err
	}
	var rec journal.Record
	var err error
	if len(live) == 0 {
		rec, err = record()
	}
	if err == nil && ss.client() != "" && !slices.ContainsFunc(live, ss.follows) {
		if _, unread := record(); !errors.Is(unread, journal.ErrNotFound) {
			err = unread
		}
	}
	switch {
	case errors.Is(err, journal.ErrNotFound):
		return nil, message.NotFound.Errorf("no call of yours has this tool_call_id; each command of a shell_call that has ended has its own, which ends in #1, #2 and so on")
	case err != nil:
		return nil, message.InternalError.Errorf("the journal cannot be read: %v", err)
	case len(agents) > 1 && ss.client() != "":
		return nil, message.InvalidArguments.Errorf("calls of several agents have this tool_call_id; add the agent_id of the one that is meant")
	case len(live) == 0:
		return dispatch.OpenRecording(rec)
	}
	for _, c := range live {
		if rec := c.Recording(); rec != nil {
			return rec, nil
		}
	}
	return nil, message.NotRunning.Errorf("this call has not begun to run, so it has no output yet; ask again when tool_started has come")
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
	list, err := ss.srv.opt.Dispatch.List(context.Background(), ss.client(), m.All)
	if err != nil {
		ss.refuse(message.InternalError, "", fmt.Sprint(err))
		return
	}
	ss.reply(m.Answer(list))
}
