package server

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
	"github.com/toold/toold/tools"
)

// outputBytes is how much of a call's output get_output returns when it is not
// told, and at most.
const outputBytes = 1 << 20

// recording is the output of one call: of a running one in its capture, of an
// ended one in its files.
type recording interface {
	// ReadAt reads at most most bytes from an offset, or from the next later one
	// that is kept; eof tells that nothing more is kept, and nothing will come.
	ReadAt(s tools.Stream, offset int64, most int) (p []byte, from int64, eof bool)
	// Total is how many bytes the stream has had so far, kept or not.
	Total(s tools.Stream) int64
}

func (ss *session) getOutput(m *message.GetOutput) {
	if !ss.may("read output", m.CallID, Agent, Observer, Approver, Admin) {
		return
	}
	answer, e := ss.output(m)
	if e != nil {
		ss.reply(e)
		return
	}
	ss.reply(answer)
}

// output reads the part of a call's output that was asked for.
func (ss *session) output(m *message.GetOutput) (*message.Output, *message.Error) {
	rec, e := ss.recording(m.CallID)
	if e != nil {
		return nil, e
	}
	s := stream(m.Stream)
	if total := rec.Total(s); m.Offset > total {
		return nil, message.Errorf(message.InvalidArguments, "offset %d is beyond the end: %s has %d bytes; ask from the next_offset of the last answer", m.Offset, m.Stream, total)
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

// recording finds the output of a call.
func (ss *session) recording(callID string) (recording, *message.Error) {
	live := ss.srv.opt.Dispatch.Find(ss.client(), callID)
	for _, c := range live {
		if capture := c.Capture(); capture != nil {
			return running{capture}, nil
		}
	}
	if len(live) > 0 {
		return nil, message.Errorf(message.NotRunning, "this call has not begun to run, so it has no output yet; ask again when tool_started has come")
	}
	rec, err := ss.record(callID)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, message.Errorf(message.NotFound, "no call of yours has this tool_call_id")
	}
	if err != nil {
		return nil, message.Errorf(message.InternalError, "the journal cannot be read: %v", err)
	}
	return ended(rec)
}

// ended opens the output of a call that has its return.
func ended(rec journal.Record) (recording, *message.Error) {
	if rec.SpoolDir == "" {
		return nil, message.Errorf(message.NotFound, "this call started no command, so it left no output; its answer is in its return")
	}
	e := &past{}
	var ret message.ToolReturn
	if json.Unmarshal(rec.Result, &ret) == nil {
		e.totals = [2]int64{ret.StdoutBytes, ret.StderrBytes}
	}
	spool, err := tools.OpenSpool(rec.SpoolDir)
	if err != nil && (e.totals != [2]int64{} || rec.ErrorType == string(message.UnknownAfterCrash)) {
		return nil, message.Errorf(message.NotFound, "the output of this call is not kept any more (limits.spool_keep, limits.spool_total); its return holds the head and the tail")
	}
	e.spool = spool
	return e, nil
}

// running is the output of a call that runs.
type running struct{ *tools.Capture }

// Total counts a stream.
func (r running) Total(s tools.Stream) int64 {
	stdout, stderr, _ := r.Totals()
	return [...]int64{stdout, stderr, stdout + stderr}[s]
}

// past is the output of a call that has ended.
type past struct {
	spool  *tools.Spool // nil when the call printed nothing
	totals [2]int64     // as the return counts them; zero where it does not
}

// ReadAt reads what is in the files.
func (e *past) ReadAt(s tools.Stream, offset int64, most int) (p []byte, from int64, eof bool) {
	if e.spool == nil {
		return nil, offset, true
	}
	p, _ = e.spool.ReadAt(s, offset, most)
	return p, offset, offset+int64(len(p)) >= e.spool.Size(s)
}

// Total is what the return says, or what the files hold if that is more: the
// return of a call that was cut off by a crash counts nothing.
func (e *past) Total(s tools.Stream) int64 {
	counted := [...]int64{e.totals[0], e.totals[1], e.totals[0] + e.totals[1]}[s]
	if e.spool == nil {
		return counted
	}
	return max(counted, e.spool.Size(s))
}

// record finds an ended call: an agent's among its own, for others the latest of
// anybody's.
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

// listCalls answers with the calls that the client may see.
func (ss *session) listCalls(m *message.ListCalls) {
	if !ss.may("list calls", "", Agent, Observer, Approver, Admin) {
		return
	}
	list, err := ss.srv.opt.Dispatch.List(context.Background(), ss.client(), m.All)
	if err != nil {
		ss.refuse(message.InternalError, "", fmt.Sprint(err))
		return
	}
	ss.reply(message.Calls{MessageType: "calls", RequestID: m.RequestID, Calls: list})
}
