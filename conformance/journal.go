//go:build linux

package conformance

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/toold/toold/internal/journal"
)

// calls reads every call from the journal that the daemon writes.
func (p *player) calls(ctx context.Context) ([]journal.Record, error) {
	return p.journal.Calls(ctx, 0, math.MaxInt32)
}

// waitJournaled waits briefly until every call that was sent is in the journal, and reports whether it is. That is no
// fault otherwise: fragments may be dropped, and frames refused.
func (p *player) waitJournaled(ctx context.Context) bool {
	limit, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	err := p.poll(limit, func(calls []journal.Record) string {
		for id := range p.sent {
			if !slices.ContainsFunc(calls, func(c journal.Record) bool { return c.ID == id }) {
				return "call " + id + " has not arrived"
			}
		}
		return ""
	})
	return err == nil
}

// waitReturned waits until every call has its return, and briefly until each is marked as delivered: a return is stored
// before it is written, and without a client it is never delivered.
func (p *player) waitReturned(ctx context.Context) error {
	err := p.poll(ctx, func(calls []journal.Record) string {
		return firstOpen(calls, func(c journal.Record) bool { return !c.ReturnedAt.IsZero() })
	})
	if err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	_ = p.poll(limit, func(calls []journal.Record) string {
		return firstOpen(calls, func(c journal.Record) bool { return !c.DeliveredAt.IsZero() })
	})
	return nil
}

// firstOpen names the first call that is not done.
func firstOpen(calls []journal.Record, done func(journal.Record) bool) string {
	for _, c := range calls {
		if !done(c) {
			return fmt.Sprintf("call %s is still %s", c.ID, c.State)
		}
	}
	return ""
}

// poll reads the calls until done returns "". When ctx ends, its error is what done returned last.
func (p *player) poll(ctx context.Context, done func([]journal.Record) string) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		calls, err := p.calls(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		why := done(calls)
		if why == "" {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s", why)
		}
	}
}

// checkJournal checks how many calls ran, and the row of one.
func (p *player) checkJournal(ctx context.Context, e expectation) (reasons []string) {
	// No call is under way any more: only the mark of delivery may be missing.
	limit, cancel := context.WithTimeout(ctx, p.settleTime())
	defer cancel()
	if e.Exec != nil {
		calls, err := p.calls(limit)
		ran := 0
		for _, c := range calls {
			if !c.IntendedAt.IsZero() {
				ran++
			}
		}
		if err != nil || ran != *e.Exec {
			reasons = append(reasons, fmt.Sprintf("%d calls ran, want %d (%v)", ran, *e.Exec, err))
		}
	}
	if e.Journal != nil {
		err := p.poll(limit, func(calls []journal.Record) string {
			why := "the journal has no calls"
			for _, c := range calls {
				if why = p.vars.match(e.Journal, "", callFields(c)); why == "" {
					return ""
				}
			}
			return "no call in the journal matches " + text(e.Journal) + ": " + why
		})
		if err != nil {
			reasons = append(reasons, err.Error())
		}
	}
	return reasons
}

// callFields returns the fields of a call for a matcher.
func callFields(c journal.Record) map[string]any {
	return map[string]any{
		"tool_call_id": c.ID, "state": string(c.State), "status": c.Status, "error_type": c.ErrorType,
		"tool_name": c.Tool, "run_id": c.RunID, "agent_id": c.AgentID,
		"decision": map[string]any{"action": c.Decision.Action, "by": c.Decision.By, "rule": c.Decision.Rule},
	}
}

// sequence maps the ids of the journal's messages to their numbers.
func (p *player) sequence(ctx context.Context) (map[string]int64, error) {
	page, err := p.journal.List(ctx, journal.Query{Limit: 1000})
	if err != nil {
		return nil, err
	}
	numbers := map[string]int64{}
	for _, m := range page.Messages {
		numbers[m.ID] = m.Seq
	}
	return numbers, nil
}
