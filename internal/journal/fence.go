package journal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Fence records, synced, that a client cancelled a call that has not come. It reports false if the
// client has used the id. Only the latest most ids of a client are kept.
func (j *Journal) Fence(ctx context.Context, client, callID string, most int) (fenced bool, err error) {
	err = j.write.record(synced, func(b *batch) error {
		used := b.table.latest(func(r *Record) bool { return r.Client == client && r.ID == callID }) != nil
		if !used {
			_, err := j.index.find(ctx, cID, j.index.hash.of(callID), func(c *Call) bool { return c.Client == client && c.ID == callID })
			if used = err == nil; !used && !errors.Is(err, ErrNotFound) {
				return err
			}
		}
		if used {
			return nil
		}
		fenced = true
		return b.append(kindFence, &fenceEvent{client, callID, int64(most)})
	})
	if err != nil {
		return false, fmt.Errorf("cannot journal that tool call %q is cancelled: %w", callID, err)
	}
	return fenced, nil
}

// Unfence forgets a fence whose call is recorded. It does not wait; failed receives an error.
func (j *Journal) Unfence(client, callID string, failed func(error)) {
	j.updateLater("fence", kindUnfence, &fenceEvent{client: client, id: callID}, failed)
}

// Fences returns the fenced ids by client, oldest first.
func (j *Journal) Fences() map[string][]string {
	j.write.known.RLock()
	defer j.write.known.RUnlock()
	all := maps.Clone(j.write.table.fences)
	for client, ids := range all {
		all[client] = slices.Clone(ids)
	}
	return all
}
