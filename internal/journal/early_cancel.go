package journal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// EarlyCancelName returns the name of an early cancel for a call id of one agent or, if agent is nil, of every agent.
// No id contains the separator. Names in older journals have no agent.
func (*Journal) EarlyCancelName(agent *string, callID string) string {
	if agent == nil {
		return callID
	}
	return callID + "\n" + *agent
}

// CancelEarly records, synced, that a client cancelled a call that has not arrived, of one agent or, if agent is nil, of
// any. It reports false if a recorded call has the id. Only the latest most early cancels of a client are kept.
func (j *Journal) CancelEarly(ctx context.Context, client string, agent *string, callID string, most int) (recorded bool, err error) {
	err = j.write.record(synced, func(b *batch) error {
		fits := func(c *Call) bool {
			isAgent := agent == nil || c.AgentID == *agent
			return isAgent && c.Client == client && c.ID == callID
		}
		for _, r := range b.table.calls {
			if fits(&r.Call) {
				return nil
			}
		}
		if _, err := j.index.find(ctx, cID, j.index.hash.of(callID), fits); !errors.Is(err, ErrNotFound) {
			return err // nil = the id is used
		}
		recorded = true
		return b.append(kindEarlyCancel, &earlyCancelEvent{client, j.EarlyCancelName(agent, callID), int64(most)})
	})
	if err != nil {
		return false, fmt.Errorf("cannot journal that tool call %q is cancelled: %w", callID, err)
	}
	return recorded, nil
}

// ForgetEarlyCancel removes an early cancel whose call is recorded. It does not wait; failed receives any error.
func (j *Journal) ForgetEarlyCancel(client, name string, failed func(error)) {
	j.updateLater("early cancel", kindCancelForgotten, &earlyCancelEvent{client: client, id: name}, failed)
}

// EarlyCancels returns the names of the early cancels by client, oldest first.
func (j *Journal) EarlyCancels() map[string][]string {
	j.write.known.RLock()
	defer j.write.known.RUnlock()
	all := maps.Clone(j.write.table.earlyCancels)
	for client, ids := range all {
		all[client] = slices.Clone(ids)
	}
	return all
}
