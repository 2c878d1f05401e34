package dispatch

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
)

// Rejoin attaches to an unanswered call, or replays the return of an answered one. Otherwise the only event is an
// error. wake is as for Watch.
func (d *Dispatcher) Rejoin(key Key, wake func()) *Watcher {
	c := d.find(key)
	if c == nil {
		c = d.quietCall(message.OpenLetta, key.Client, key.Agent, message.ToolCall{ID: key.ID})
		c.emit(Final{Err: about(key.ID, message.NotFound.Errorf("what became of tool call %q is not known here; send it again with the same id: if it ran, it does not run twice", key.ID))})
	}
	return c.Watch(wake)
}

// find returns an unanswered call, or an answered one that has only its return, or nil.
func (d *Dispatcher) find(key Key) *Call {
	if c := d.unanswered(key); c != nil {
		return c
	}
	rec, err := d.opt.Journal.FindAs(context.Background(), key.Client, key.Agent, key.ID)
	if err != nil {
		return nil
	}
	return d.ended(rec)
}

func (d *Dispatcher) unanswered(key Key) *Call {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls[key]
}

// Knows reports whether a call may have been received before.
func (d *Dispatcher) Knows(key Key) bool {
	if d.unanswered(key) != nil {
		return true
	}
	_, err := d.opt.Journal.FindAs(context.Background(), key.Client, key.Agent, key.ID)
	return !errors.Is(err, journal.ErrNotFound)
}

func (d *Dispatcher) ended(rec journal.Record) *Call {
	ret := d.returnOf(rec)
	if ret == nil {
		return nil
	}
	c := d.quietCall(message.Dialect(rec.Dialect), rec.Client, rec.AgentID, message.ToolCall{ID: rec.ID, Name: rec.Tool})
	c.rec = rec.Key
	if rec.BackgroundOf != "" {
		c.of = &Call{ID: rec.BackgroundOf}
	}
	ret.Replayed = c.of == nil
	c.emit(Final{Return: ret, Background: d.backgroundOf(c, ret)})
	return c
}

func (d *Dispatcher) quietCall(dialect message.Dialect, client, agent string, asked message.ToolCall) *Call {
	c, _ := d.newCall(Submission{Client: client, Request: &message.Request{Dialect: dialect, Origin: message.Origin{AgentID: agent}}, Call: asked})
	c.stop(nil)
	c.seen = nil
	return c
}

// returnOf returns the return of a recorded call, journaled or not, or nil.
func (d *Dispatcher) returnOf(rec journal.Record) *message.ToolReturn {
	if len(rec.Result) == 0 {
		if ret, _ := d.save(rec.Key); ret != nil {
			return ret
		}
		// SaveReturns may have journaled it meanwhile.
		now, err := d.opt.Journal.FindAs(context.Background(), rec.Client, rec.AgentID, rec.ID)
		if err != nil || len(now.Result) == 0 {
			return nil
		}
		rec = now
	}
	ret, err := message.Record(rec.Result).Return()
	if err != nil {
		d.opt.Log.Error("cannot read a recorded return", zap.String("call", rec.ID), zap.Error(err))
		return nil
	}
	return &ret
}
