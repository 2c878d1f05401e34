package dispatch

import (
	"context"
	"path/filepath"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
	"github.com/toold/toold/tools/spool"
)

const (
	tendEvery  = 5 * time.Minute
	maxUnsaved = 1000 // returns kept that could not be journalled
)

// unsaved is a return that could not be journalled: the disk was full.
type unsaved struct {
	ret     message.ToolReturn
	outcome journal.Outcome
}

// Tend removes recorded output that is older than Limits.SpoolKeep and, the
// oldest first, what is over Limits.SpoolTotal, and journals the returns that
// could not be journalled when their calls ended. It does so at once, then from
// time to time until ctx ends. Calls that run keep their output.
func (d *Dispatcher) Tend(ctx context.Context) {
	tick := time.NewTicker(tendEvery)
	defer tick.Stop()
	for {
		d.saveAll(ctx)
		if err := d.sweep(ctx); err != nil && ctx.Err() == nil {
			d.opt.Log.Warn("cannot remove old output", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-d.grown:
		}
	}
}

// recorded counts what a call may have left on the disk, and wakes Tend when it
// has become a sixteenth of what may be kept.
func (d *Dispatcher) recorded(n int64) {
	d.mu.Lock()
	d.spooled += min(n, d.opt.Limits.SpoolBytes)
	much := d.spooled > d.opt.Limits.SpoolTotal/16
	d.mu.Unlock()
	if much {
		select {
		case d.grown <- struct{}{}:
		default:
		}
	}
}

// sweep removes output by age and size. The folders are listed before the open
// calls: whatever is listed is of a call that is open then, or has ended.
func (d *Dispatcher) sweep(ctx context.Context) error {
	d.mu.Lock()
	d.spooled = 0
	d.mu.Unlock()
	spools, err := spool.List(d.opt.SpoolDir)
	if err != nil || len(spools) == 0 {
		return err
	}
	open, err := d.opt.Journal.OpenCalls()
	if err != nil {
		return err
	}
	total := int64(0)
	for _, s := range spools { // the latest first
		key, err := strconv.ParseInt(s.Name, 10, 64)
		if err != nil {
			continue // nothing of toold's
		}
		total += s.Bytes
		old := time.Since(s.Changed) > d.opt.Limits.SpoolKeep
		if open[journal.Key(key)] || !old && total <= d.opt.Limits.SpoolTotal {
			continue
		}
		if err := spool.Remove(filepath.Join(d.opt.SpoolDir, s.Name)); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// keepUnsaved holds a return until it can be journalled.
func (d *Dispatcher) keepUnsaved(k journal.Key, u unsaved) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.unsaved) < maxUnsaved {
		d.unsaved[k] = u
	}
}

// saveAll tries to journal the returns that could not be.
func (d *Dispatcher) saveAll(ctx context.Context) {
	d.mu.Lock()
	keys := make([]journal.Key, 0, len(d.unsaved))
	for k := range d.unsaved {
		keys = append(keys, k)
	}
	d.mu.Unlock()
	for _, k := range keys {
		if _, ok := d.save(ctx, k); !ok {
			return
		}
	}
}

// save tries to journal a return that could not be. It returns the return, nil
// when there is none, and whether it is journalled.
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

// withoutReturn answers the repeat of a call that is recorded without a return
// and does not run here.
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
	e := message.Errorf(message.DuplicateToolCall, "tool_call_id %q %s", c.ID, why)
	e.CallID = c.ID
	return Final{Err: e}
}
