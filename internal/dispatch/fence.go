package dispatch

import (
	"context"
	"errors"
	"slices"

	"github.com/toold/toold/internal/journal"
)

// maxFences is how many ids of a client are remembered as cancelled before they
// came. Beyond it the oldest is forgotten.
const maxFences = 1024

// fences are the ids that were cancelled before their calls came, by client, the
// oldest first.
type fences map[string][]string

func (f fences) add(client, id string) {
	ids := append(f[client], id)
	if len(ids) > maxFences {
		ids = ids[1:]
	}
	f[client] = ids
}

// take reports whether an id is fenced, and removes the fence.
func (f fences) take(client, id string) bool {
	i := slices.Index(f[client], id)
	if i < 0 {
		return false
	}
	f[client] = slices.Delete(f[client], i, i+1)
	return true
}

// Fence cancels a call that has not come yet: when it does it is answered as
// cancelled and nothing of it runs. A cancel may overtake its call, on another
// connection or after a crash of the client. It reports false, and does nothing,
// when the client has used the id already. Fences do not outlive the daemon.
func (d *Dispatcher) Fence(ctx context.Context, client, id string) bool {
	_, err := d.opt.Journal.Find(ctx, client, id)
	if !errors.Is(err, journal.ErrNotFound) {
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
