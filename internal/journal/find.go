package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/statedir"
)

// FindFunc returns the latest call with this id that fits, or ErrNotFound.
func (j *Journal) FindFunc(ctx context.Context, callID string, fits func(*Call) bool) (Record, error) {
	return j.latest(ctx, cID, j.index.hash.of(callID), func(c *Call) bool { return c.ID == callID && fits(c) })
}

// FindAs returns the latest call of an agent of a client with this id, or ErrNotFound.
func (j *Journal) FindAs(ctx context.Context, client, agent, callID string) (Record, error) {
	return j.latest(ctx, cIdentity, j.index.hash.identity(identity{client, agent, callID}), func(c *Call) bool {
		return c.Client == client && c.AgentID == agent && c.ID == callID
	})
}

// Lacks reports whether no such call was recorded or read by this process so far. It neither reads nor writes the log.
func (j *Journal) Lacks(client, agent, callID string) bool {
	w := j.write
	if w.log == nil {
		return false
	}
	w.known.RLock()
	defer w.known.RUnlock()
	id := identity{client, agent, callID}
	_, recent := w.table.ids[id]
	return !recent && w.table.filter.lacks(id)
}

// FindAny returns the latest call of any client with this id, or ErrNotFound.
func (j *Journal) FindAny(ctx context.Context, callID string) (Record, error) {
	return j.latest(ctx, cID, j.index.hash.of(callID), func(c *Call) bool { return c.ID == callID })
}

func (j *Journal) latest(ctx context.Context, column int, hash uint32, fits func(*Call) bool) (r Record, err error) {
	err = j.query(func(v *view) error {
		r, err = v.find(ctx, column, hash, fits)
		return err
	})
	r.Arguments = nil
	return r, err
}

// query calls do, and repeats it if another process removed records meanwhile. It returns ErrBusy if another process
// writes for long, because that process's records may be missing. If the log cannot be read, query returns that error
// after a listing of the records read before, and instead of ErrNotFound.
func (j *Journal) query(do func(*view) error) error {
	for {
		unread := j.write.look()
		if errors.Is(unread, ErrBusy) {
			return unread
		}
		begins := j.index.begin()
		v := j.index.view()
		err := do(v)
		v.close()
		isListing := err == nil && v.lenient
		if isListing || errors.Is(err, ErrNotFound) {
			err = cmp.Or(unread, err)
		}
		removed := errors.Is(err, chain.ErrNoMark) && j.write.look() == nil && j.index.begin() != begins
		if !removed {
			return err
		}
	}
}

// Arguments returns a call's arguments as recorded, or ErrNotFound.
func (j *Journal) Arguments(k Key) (text []byte, err error) {
	err = j.query(func(v *view) error {
		e, err := v.callEvent(k)
		if err == nil {
			text = e.call.Arguments
		}
		return err
	})
	return text, err
}

// Calls returns up to limit calls after a key, oldest first. The zero Key precedes the first call.
func (j *Journal) Calls(ctx context.Context, after Key, limit int) ([]Record, error) {
	return j.records(ctx, callScan{between: between{after: int64(after)}, ascending: true}, limit, nil)
}

// Latest returns up to limit calls before a key, latest first; the zero Key follows the last. With an error it returns
// the readable calls.
func (j *Journal) Latest(ctx context.Context, before Key, limit int) ([]Record, error) {
	return j.records(ctx, callScan{between: between{before: int64(before)}}, limit, nil)
}

// Ended returns up to limit calls that have a return, latest first. An empty client or callID means any.
func (j *Journal) Ended(ctx context.Context, client, callID string, limit int) ([]Record, error) {
	q := callScan{changing: flags(hasEnded, 0)}
	if client != "" {
		q.static = j.index.equals(cClient, client)
	}
	if callID != "" {
		q.static = append(q.static, j.index.equals(cID, callID)...)
	}
	return j.records(ctx, q, limit, func(r *Record) bool {
		ofClient := client == "" || r.Client == client
		return ofClient && (callID == "" || r.ID == callID)
	})
}

// Ran returns up to limit calls of a conversation that have a return and may have output, latest first.
func (j *Journal) Ran(ctx context.Context, client, agent, conversation string, limit int) ([]Record, error) {
	x := j.index
	q := callScan{
		static:   slices.Concat(x.equals(cConversation, conversation), x.equals(cAgent, agent), x.equals(cClient, client)),
		changing: flags(hasEnded|hasOutput, 0),
	}
	return j.records(ctx, q, limit, func(r *Record) bool {
		return r.Client == client && r.AgentID == agent && r.ConversationID == conversation
	})
}

// Undelivered returns up to limit background calls of a client whose return was not delivered, oldest first.
func (j *Journal) Undelivered(ctx context.Context, client string, limit int) ([]Record, error) {
	q := callScan{static: j.index.equals(cClient, client), changing: flags(isBackground|hasEnded, isDelivered), ascending: true}
	return j.records(ctx, q, limit, func(r *Record) bool { return r.Client == client })
}

// equals returns the conditions for a column that has this text, or one with the same hash.
func (x *index) equals(column int, text string) []condition {
	return []condition{{column, []uint32{x.hash.of(text)}}}
}

// flags returns the conditions for a call that has all of these flags and none of the others.
func flags(all, none uint32) []condition {
	var want []uint32
	for f := range uint32(allFlags) {
		if f&all == all && f&none == 0 {
			want = append(want, f)
		}
	}
	return []condition{{cFlags, want}}
}

// OpenCalls returns the keys of the calls of all daemons that have no return, or ErrBusy.
func (j *Journal) OpenCalls() (map[Key]bool, error) {
	if err := j.write.look(); err != nil {
		return nil, fmt.Errorf("cannot read the journal's open calls: %w", err)
	}
	open := map[Key]bool{}
	j.write.known.RLock()
	defer j.write.known.RUnlock()
	for k, r := range j.write.table.calls {
		if r.ReturnedAt.IsZero() {
			open[k] = true
		}
	}
	return open, nil
}

// records is recordsWithArguments without them.
func (j *Journal) records(ctx context.Context, q callScan, limit int, fits func(*Record) bool) (list []Record, err error) {
	list, err = j.recordsWithArguments(ctx, q, limit, fits)
	for i := range list {
		list[i].Arguments = nil
	}
	return list, err
}

// recordsWithArguments returns up to limit calls that a query selects and fits accepts. With an error it returns the
// readable calls.
func (j *Journal) recordsWithArguments(ctx context.Context, q callScan, limit int, fits func(*Record) bool) (list []Record, err error) {
	err = j.query(func(v *view) error {
		list, v.lenient = nil, true
		err := v.calls(ctx, q, func(k Key) (bool, error) {
			if len(list) >= limit {
				return false, nil
			}
			r, err := v.record(k)
			if v.skips(err) {
				return true, nil
			}
			if err == nil && (fits == nil || fits(&r)) {
				list = append(list, r)
			}
			return len(list) < limit, err
		})
		return cmp.Or(err, v.skipped)
	})
	if err != nil {
		err = fmt.Errorf("cannot read the journal's calls: %w", err)
	}
	return list, err
}

// Unfinished returns the open calls of dead daemons that wanted accepts (nil: all), oldest first, and makes this
// daemon their owner. A Running call may have executed and must not run again; a call that was Intended when the
// machine crashed becomes Running. A damaged journal returns none until it is accepted.
func (j *Journal) Unfinished(wanted func(*Record) bool) ([]Record, error) {
	var list []Record
	if j.write.tampered != nil {
		return nil, nil
	}
	err := j.recordAnyway(synced, func(b *batch) (err error) {
		if list, err = j.abandoned(b.table, wanted); err != nil {
			return err
		}
		for i, r := range list {
			if err := b.append(kindAdopted, &adoptedEvent{int64(r.Key), j.daemon}); err != nil {
				return err
			}
			list[i] = b.table.calls[r.Key].Record
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot find the calls of dead daemons: %w", err)
	}
	return list, nil
}

// abandoned returns the open calls of dead daemons. The caller holds the table's lock.
func (j *Journal) abandoned(t *table, wanted func(*Record) bool) (list []Record, err error) {
	alive := map[string]bool{j.daemon: true}
	for _, r := range t.calls {
		if !r.ReturnedAt.IsZero() || wanted != nil && !wanted(&r.Record) {
			continue
		}
		lives, looked := alive[r.Daemon]
		if !looked {
			if lives, err = statedir.Held(j.dir, r.Daemon); err != nil {
				return nil, err
			}
			alive[r.Daemon] = lives
		}
		if !lives {
			list = append(list, r.Record)
		}
	}
	slices.SortFunc(list, func(a, b Record) int { return cmp.Compare(a.Key, b.Key) })
	return list, nil
}
