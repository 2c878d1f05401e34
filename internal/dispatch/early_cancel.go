package dispatch

import (
	"context"
	"slices"

	"go.uber.org/zap"
)

const maxEarlyCancels = 1024

// earlyCancels are a client's cancels that precede their calls, oldest first.
type earlyCancels map[string][]string

func (f earlyCancels) add(client, id string) {
	ids := append(f[client], id)
	if len(ids) > maxEarlyCancels {
		ids = ids[1:]
	}
	f[client] = ids
}

func (f earlyCancels) take(client, id string) bool {
	i := slices.Index(f[client], id)
	if i < 0 {
		return false
	}
	f[client] = slices.Delete(f[client], i, i+1)
	return true
}

// CancelEarly cancels a call that has not arrived: it will not run. It returns false if the id is
// used already, or the cancel cannot be recorded.
func (d *Dispatcher) CancelEarly(ctx context.Context, client, id string) bool {
	cancelled, err := d.opt.Journal.Fence(context.WithoutCancel(ctx), client, id, maxEarlyCancels)
	if err != nil {
		d.opt.Log.Error("cannot journal an early cancel", zap.String("call", id), zap.Error(err))
	}
	if !cancelled {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.calls {
		if c.ID == id && c.client == client {
			c.Cancel("")
			return true
		}
	}
	if !slices.Contains(d.earlyCancels[client], id) {
		d.earlyCancels.add(client, id)
	}
	return true
}

// takeEarlyCancel removes the cancel of an answered call, unless the answer is unrecorded: the call
// may be repeated.
func (d *Dispatcher) takeEarlyCancel(c *Call) {
	if c.lost != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.earlyCancels.add(c.client, c.ID)
		return
	}
	d.opt.Journal.Unfence(c.client, c.ID, func(err error) {
		d.opt.Log.Warn("cannot journal the end of an early cancel", zap.String("call", c.ID), zap.Error(err))
	})
}
