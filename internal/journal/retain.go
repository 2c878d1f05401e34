package journal

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Part is a part of a journal that can be removed as a whole.
type Part struct {
	Bytes int64
	Ended time.Time // by the clock of that time; never before the end of an earlier part

	segment uint32
}

// Parts lists the complete parts, oldest first. The last part, which still grows, is not included.
func (j *Journal) Parts() (list []Part, err error) {
	if j.write.log == nil {
		return nil, j.write.tampered
	}
	segments, err := j.write.log.Segments()
	if err != nil {
		return nil, fmt.Errorf("cannot list the parts of the journal: %w", err)
	}
	var ended time.Time
	now := time.Now()
	for i, s := range segments[:len(segments)-1] {
		if begun := segments[i+1].Begun; begun.After(ended) && !begun.After(now) { // otherwise the clock was ahead
			ended = begun
		}
		list = append(list, Part{s.Bytes, ended, s.Number})
	}
	return list, nil
}

// Older reports whether a part certainly ended more than age ago. Because the clock may have been set, it adds up the
// intervals between the calls recorded since then, and until now, without the largest one. The time measured since
// this process opened the journal counts in full.
func (j *Journal) Older(ctx context.Context, p Part, age time.Duration) (bool, error) {
	if p.segment < j.opened.segment && time.Since(j.opened.at) > age {
		return true, nil
	}
	var passed, largest time.Duration
	err := j.query(func(v *view) error {
		last, now := p.Ended, time.Now()
		passed, largest = 0, 0
		step := func(at time.Time) {
			if at.After(now) { // the clock was ahead
				return
			}
			if last.IsZero() {
				last = at
			}
			if d := at.Sub(last); d > 0 {
				passed, largest, last = passed+d, max(largest, d), at
			}
		}
		isBefore := func(s *summary) bool { return s.most == 0 || s.last.Segment <= p.segment }
		err := v.each(ctx, true, isBefore, func(c *part, _ []Key) (bool, error) {
			received := c.number(callRows, nReceived)
			for row := range received.Len() {
				step(time.Unix(0, int64(received.At(row))))
			}
			return true, c.err
		})
		step(now)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("cannot find how old a part of the journal is: %w", err)
	}
	return passed-largest > age, nil
}

// Remove removes a part and all earlier ones, and records that. It reports false if an open call or Hold needs the
// part, or if it is already removed. The ids of removed calls can be used again.
func (j *Journal) Remove(p Part) (removed bool, err error) {
	_ = j.write.look() // on failure, use the records already read
	err = j.write.remove(func(b *batch, first, last uint32) (uint32, error) {
		stays := min(p.segment+1, last)
		for _, needed := range []uint32{j.oldestOpen(b.table), j.hold.Load()} {
			if needed > 0 {
				stays = min(stays, needed)
			}
		}
		removed = stays > p.segment && stays > first
		if !removed {
			return first, nil
		}
		return stays, b.append(kindRemoved, b.table.forgets(stays))
	})
	if err != nil {
		return false, fmt.Errorf("cannot remove the oldest part of the journal: %w", err)
	}
	return removed, nil
}

func (j *Journal) oldestOpen(t *table) (segment uint32) {
	oldest := Key(0)
	for k, r := range t.calls {
		if r.ReturnedAt.IsZero() && (oldest == 0 || k < oldest) {
			oldest = k
		}
	}
	if oldest == 0 {
		return 0
	}
	return j.index.segment(oldest)
}

func (t *table) forgets(stays uint32) *removedEvent {
	e := &removedEvent{stays: int64(stays), lastKey: int64(t.lastKey), lastSeq: t.lastSeq}
	for _, client := range slices.Sorted(maps.Keys(t.earlyCancels)) {
		for _, id := range t.earlyCancels[client] {
			e.earlyCancels = append(e.earlyCancels, earlyCancelEvent{client, id, int64(len(t.earlyCancels[client]))})
		}
	}
	return e
}

// Bound sets the intended size of the journal with its output, so that later segments are small enough for removal to
// help. grew receives the number of bytes that this process adds, and must not use the journal.
func (j *Journal) Bound(bytes int64, grew func(bytes int64)) {
	j.write.turn <- struct{}{}
	defer func() { <-j.write.turn }()
	j.write.grew = grew
	if j.write.log != nil {
		j.write.log.Begin(min(segmentBytes, max(bytes/64, leastSegment)))
	}
}
