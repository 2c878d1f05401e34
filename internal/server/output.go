package server

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
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
	rec, e := ss.recording(m.CallID)
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

func (ss *session) recording(callID string) (dispatch.Recording, *message.Error) {
	live := ss.srv.opt.Dispatch.Find(ss.client(), callID)
	for _, c := range live {
		if rec := c.Recording(); rec != nil {
			return rec, nil
		}
	}
	if len(live) > 0 {
		return nil, message.NotRunning.Errorf("this call has not begun to run, so it has no output yet; ask again when tool_started has come")
	}
	rec, err := ss.record(callID)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, message.NotFound.Errorf("no call of yours has this tool_call_id")
	}
	if err != nil {
		return nil, message.InternalError.Errorf("the journal cannot be read: %v", err)
	}
	return dispatch.OpenRecording(rec)
}

// record finds an ended call: an agent's own, or any client's latest.
func (ss *session) record(callID string) (journal.Record, error) {
	if client := ss.client(); client != "" {
		return ss.srv.opt.Journal.Find(context.Background(), client, callID)
	}
	return ss.srv.opt.Journal.FindAny(context.Background(), callID)
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
