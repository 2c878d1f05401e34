package dispatch

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
)

const (
	saveEvery  = 5 * time.Minute
	maxUnsaved = 1000
)

// unsaved is a return that could not be journaled: the disk was full.
type unsaved struct {
	ret     message.ToolReturn
	outcome journal.Outcome
}

// SaveReturns journals unsaved returns, now and periodically until ctx ends.
func (d *Dispatcher) SaveReturns(ctx context.Context) {
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	for {
		d.saveAll(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (d *Dispatcher) keepUnsaved(k journal.Key, u unsaved) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.unsaved) < maxUnsaved {
		d.unsaved[k] = u
	}
}

func (d *Dispatcher) saveAll(ctx context.Context) {
	d.mu.Lock()
	keys := slices.Collect(maps.Keys(d.unsaved))
	d.mu.Unlock()
	for _, k := range keys {
		if _, ok := d.save(ctx, k); !ok {
			return
		}
	}
}

func (d *Dispatcher) save(ctx context.Context, k journal.Key) (*message.ToolReturn, bool) {
	d.mu.Lock()
	u, ok := d.unsaved[k]
	d.mu.Unlock()
	if !ok {
		return nil, false
	}
	seq, err := d.opt.Journal.Finish(context.WithoutCancel(ctx), k, u.outcome, building(u.ret))
	if err != nil {
		return &u.ret, false
	}
	u.ret.SeqID = seq
	d.mu.Lock()
	delete(d.unsaved, k)
	d.mu.Unlock()
	return &u.ret, true
}

// withoutReturn answers the repeat of a call that ended without a recorded return.
func (d *Dispatcher) withoutReturn(c *Call, rec journal.Record) Final {
	if ret, _ := d.save(context.Background(), rec.Key); ret != nil {
		again := *ret
		again.Replayed = true
		return Final{Return: &again}
	}
	why := "is being run by another toold process on this machine; ask that one"
	if rec.Daemon == d.opt.Journal.Daemon() {
		why = "has ended, but its return could not be written to the journal and is lost. It does not run again: look at what it changed, and use a new id"
	}
	return Final{Err: about(c.ID, message.DuplicateToolCall.Errorf("tool_call_id %q %s", c.ID, why))}
}
