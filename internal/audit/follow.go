package audit

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/toold/toold/internal/journal"
)

const followEvery = 200 * time.Millisecond

type follower struct {
	*Log
	record *journal.Journal
	last   journal.Key
	open   map[journal.Key]bool
}

func (f *follower) begin(ctx context.Context) error {
	latest, err := f.record.Latest(ctx, 0, 1)
	if err != nil {
		return err
	}
	if len(latest) > 0 {
		f.last = latest[0].Key
	}
	f.open, err = f.record.OpenCalls()
	return err
}

func (f *follower) follow(ctx context.Context, printed []logged) error {
	done := map[journal.Key]bool{}
	for _, c := range printed {
		done[c.Key] = !c.ReturnedAt.IsZero()
	}
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		ended, err := f.ended(ctx)
		for _, k := range ended {
			if err == nil && !done[k] {
				err = f.printOne(ctx, k)
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// ended returns the calls that ended since the last time. While another process writes for long there are none.
func (f *follower) ended(ctx context.Context) ([]journal.Key, error) {
	list, err := f.found(ctx)
	if errors.Is(err, journal.ErrBusy) {
		return nil, nil
	}
	return list, err
}

func (f *follower) found(ctx context.Context) (list []journal.Key, err error) {
	for {
		page, err := f.record.Calls(ctx, f.last, 1000)
		if err != nil {
			return nil, err
		}
		for _, rec := range page {
			f.last, f.open[rec.Key] = rec.Key, true
		}
		if len(page) == 0 {
			break
		}
	}
	now, err := f.record.OpenCalls()
	if err != nil {
		return nil, err
	}
	for _, k := range slices.Sorted(maps.Keys(f.open)) {
		if !now[k] {
			delete(f.open, k)
			list = append(list, k)
		}
	}
	return list, nil
}

func (f *follower) printOne(ctx context.Context, k journal.Key) error {
	q := f.query()
	q.After, q.Before = k-1, k+1
	calls, err := f.record.Select(ctx, q)
	for errors.Is(err, journal.ErrBusy) && ctx.Err() == nil {
		calls, err = f.record.Select(ctx, q)
	}
	if err != nil || len(calls) == 0 || !f.wants(calls[0]) {
		return err
	}
	return f.print([]logged{newLogged(calls[0])})
}
