package dispatch

import (
	"context"
	"slices"

	"go.uber.org/zap"
)

const maxFences = 1024

// fences are ids that were cancelled before their calls came, by client, oldest first.
type fences map[string][]string

func (f fences) add(client, id string) {
	ids := append(f[client], id)
	if len(ids) > maxFences {
		ids = ids[1:]
	}
	f[client] = ids
}

func (f fences) take(client, id string) bool {
	i := slices.Index(f[client], id)
	if i < 0 {
		return false
	}
	f[client] = slices.Delete(f[client], i, i+1)
	return true
}

// Fence cancels a call that has not come yet: when it does, nothing of it runs. It reports false
// when the client has used the id already, or when that cannot be recorded.
func (d *Dispatcher) Fence(ctx context.Context, client, id string) bool {
	fenced, err := d.opt.Journal.Fence(context.WithoutCancel(ctx), client, id, maxFences)
	if err != nil {
		d.opt.Log.Error("cannot journal a fence", zap.String("call", id), zap.Error(err))
	}
	if !fenced {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.calls {
		if c.ID == id && c.client == client {
			c.Cancel("") // it has come meanwhile
			return true
		}
	}
	if !slices.Contains(d.fences[client], id) {
		d.fences.add(client, id)
	}
	return true
}

// unfence removes an early cancel once its call is answered. If the answer could not be recorded the cancel
// stays, since the call may come again.
func (d *Dispatcher) unfence(c *Call) {
	if c.lost != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.fences.add(c.client, c.ID)
		return
	}
	d.opt.Journal.Unfence(c.client, c.ID, func(err error) {
		d.opt.Log.Warn("cannot journal that a fence is gone", zap.String("call", c.ID), zap.Error(err))
	})
}
