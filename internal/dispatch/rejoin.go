package dispatch

import (
	"context"
	"strings"

	"go.uber.org/zap"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
)

// Rejoin attaches to a call by its Key: to one that runs, or to the recorded return
// of one that has ended, which is told as a replay. It is nil when there is neither.
// wake is as for Watch.
func (d *Dispatcher) Rejoin(key string, wake func()) *Watcher {
	d.mu.Lock()
	c := d.calls[key]
	d.mu.Unlock()
	if c == nil {
		c = d.recordedAs(key)
	}
	if c == nil {
		return nil
	}
	return c.Watch(wake)
}

// recordedAs is a call of the journal by its key; nil when there is none with a
// return.
func (d *Dispatcher) recordedAs(key string) *Call {
	parts := strings.SplitN(key, "\x00", 3)
	rec, err := d.opt.Journal.Find(context.Background(), parts[0], parts[2])
	if err != nil || rec.AgentID != parts[1] || len(rec.Result) == 0 {
		return nil
	}
	return d.ended(rec)
}

// ended is a call of the journal, with its return and nothing else to tell; nil when
// the return cannot be read.
func (d *Dispatcher) ended(rec journal.Record) *Call {
	ret, err := message.DecodeReturn(rec.Result)
	if err != nil {
		d.opt.Log.Error("cannot read a recorded return", zap.String("call", rec.ID), zap.Error(err))
		return nil
	}
	c, _ := d.newCall(Submission{
		Client: rec.Client, Request: &message.Request{Dialect: message.Dialect(rec.Dialect), AgentID: rec.AgentID},
		Call: message.ToolCall{ID: rec.ID, Name: rec.Tool},
	})
	c.stop(nil)
	c.rec = rec.Key
	if rec.BackgroundOf != "" {
		c.of = &Call{ID: rec.BackgroundOf}
	}
	ret.Replayed = c.of == nil
	c.emit(Final{Return: &ret, Background: d.backgroundOf(c, &ret)})
	return c
}
