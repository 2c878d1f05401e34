package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
	"github.com/toold/toold/sandbox/launch"
	"github.com/toold/toold/tools"
)

// others gives access to the other calls of the same client, agent and conversation.
type others struct {
	d  *Dispatcher
	of *Call
}

func (o others) live(id string) []*Call {
	return slices.DeleteFunc(o.d.Find(o.of.client, id), func(c *Call) bool {
		return c == o.of || c.conversation() != o.of.conversation()
	})
}

func (o others) has(rec journal.Record) bool {
	return o.of.conversation() == conversation{rec.Client, rec.AgentID, rec.ConversationID} && rec.ID != o.of.ID
}

func (o others) Find(ctx context.Context, id string) (tools.OtherCall, error) {
	if live := o.live(id); len(live) > 0 {
		return liveCall{live[0]}, nil
	}
	rec, err := o.d.opt.Journal.FindAs(ctx, o.of.client, o.of.req.AgentID, id)
	switch {
	case errors.Is(err, journal.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("cannot find the call in the journal: %w", err)
	case !o.has(rec):
		return nil, nil
	}
	return o.d.newEndedCall(rec), nil
}

func (o others) List(ctx context.Context, ended bool) ([]tools.CallStatus, error) {
	var list []tools.CallStatus
	if ended {
		records, err := o.d.opt.Journal.Ran(ctx, o.of.client, o.of.req.AgentID, o.of.req.ConversationID, endedShown)
		if err != nil {
			return nil, fmt.Errorf("cannot list the calls that have ended: %w", err)
		}
		for _, rec := range slices.Backward(records) {
			list = append(list, o.d.newEndedCall(rec).status)
		}
	}
	for _, c := range o.live("") {
		list = append(list, liveCall{c}.Status())
	}
	return list, nil
}

type liveCall struct{ *Call }

func (c liveCall) Status() tools.CallStatus {
	i := c.info()
	s := tools.CallStatus{
		ID: c.ID, Background: c.of != nil, State: string(i.State), What: i.Preview, Started: c.startedAt(),
		Bytes: [3]int64{i.StdoutBytes, i.StderrBytes, i.StdoutBytes + i.StderrBytes},
	}
	for _, e := range c.Events(0) {
		if f, ok := e.(Final); ok {
			s.State, s.End = string(message.CallEnded), endOf(f.Return)
		}
	}
	return s
}

func (c liveCall) startedAt() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.progress.startedAt
}

// Changed returns a channel that is closed at the next change, or nil after the end.
func (c liveCall) Changed() <-chan struct{} {
	select {
	case <-c.ended:
		return nil
	default:
	}
	capture := c.Capture()
	if capture == nil {
		return c.begun
	}
	if _, _, closed := capture.Totals(); closed {
		return c.ended
	}
	return capture.Changed()
}

func (c liveCall) ReadAt(s tools.Stream, offset int64, most int) (p []byte, from int64) {
	return readAt(c.Recording(), s, offset, most)
}

func (c liveCall) Stop(reason string) <-chan struct{} {
	c.Cancel(reason)
	return c.ended
}

type endedCall struct {
	status tools.CallStatus
	output Recording // nil if there is none
}

func (d *Dispatcher) newEndedCall(rec journal.Record) endedCall {
	e := endedCall{status: tools.CallStatus{
		ID: rec.ID, Background: rec.BackgroundOf != "", State: string(message.CallEnded), Started: startOf(rec),
	}}
	ret, err := message.Record(rec.Result).Return()
	if err != nil {
		e.status.End = "no return that can be read"
		return e
	}
	e.status.End = endOf(&ret)
	e.status.Bytes = [3]int64{ret.StdoutBytes, ret.StderrBytes, ret.StdoutBytes + ret.StderrBytes}
	if output, missing := d.OpenRecording(rec); missing == nil {
		e.output = output
	}
	return e
}

func (e endedCall) Status() tools.CallStatus { return e.status }

func (e endedCall) Changed() <-chan struct{} { return nil }

func (e endedCall) ReadAt(s tools.Stream, offset int64, most int) (p []byte, from int64) {
	return readAt(e.output, s, offset, most)
}

func readAt(output Recording, s tools.Stream, offset int64, most int) (p []byte, from int64) {
	if output == nil {
		return nil, offset
	}
	p, from, _ = output.ReadAt(s, offset, most)
	return p, from
}

func (e endedCall) Stop(string) <-chan struct{} {
	ended := make(chan struct{})
	close(ended)
	return ended
}

func endOf(ret *message.ToolReturn) string {
	switch {
	case ret == nil:
		return "no return of its own"
	case ret.Background != nil:
		return "it goes on in the background as " + ret.Background.CallID
	case ret.ExitCode != nil && ret.ErrorType != nil:
		return fmt.Sprintf("%s, exit code %d", *ret.ErrorType, *ret.ExitCode)
	case ret.ExitCode != nil:
		return fmt.Sprintf("exit code %d", *ret.ExitCode)
	case ret.ErrorType != nil:
		return string(*ret.ErrorType)
	}
	return cmp.Or(ret.Status, "no status")
}

// conversation is the scope of remembered answers and shared servers.
type conversation struct{ client, agent, id string }

type lentLoopback struct {
	launch.Loopback
	calls int // number of background calls
}

// loopback returns the servers of the conversation that a call may reach, and the name under which it shares its own.
// A call with an escalation, profile or limit of its own gets none, because servers could pass its access on to
// others.
func (d *Dispatcher) loopback(c *Call) (l *launch.Loopback, lends string, giveBack func()) {
	if c.escalation != nil || c.profile != "" || !c.limit.IsZero() {
		return nil, "", func() {}
	}
	key := c.conversation()
	d.mu.Lock()
	defer d.mu.Unlock()
	lent := d.lent[key]
	if c.of == nil {
		if lent == nil {
			return nil, "", func() {}
		}
		return &lent.Loopback, "", func() {}
	}
	if lent == nil {
		lent = &lentLoopback{}
		d.lent[key] = lent
	}
	lent.calls++
	return &lent.Loopback, c.ID, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if lent.calls--; lent.calls == 0 {
			delete(d.lent, key)
		}
	}
}
