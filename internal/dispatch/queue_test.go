package dispatch

import (
	"testing"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
)

func has(t *ticket) bool {
	select {
	case <-t.ready:
		return true
	default:
		return false
	}
}

func TestPlacesGoToOwnersInTurn(t *testing.T) {
	t.Parallel()
	q := newQueue(1, 1)
	first := q.enter("busy")
	names := map[*ticket]string{}
	var waiting []*ticket
	for _, name := range []string{"busy 1", "busy 2", "busy 3", "calm 1", "calm 2", "late 1"} {
		ticket := q.enter(name[:4])
		names[ticket] = name
		waiting = append(waiting, ticket)
	}
	places := map[string]int{}
	for ticket, name := range names {
		places[name] = q.position(ticket)
	}
	want := map[string]int{"busy 1": 1, "calm 1": 2, "late 1": 3, "busy 2": 4, "calm 2": 5, "busy 3": 6}
	must.Match(t, want, places)
	var served []string
	for current := first; len(served) < len(waiting); {
		q.leave(current)
		for _, ticket := range waiting {
			if name := names[ticket]; name != "" && has(ticket) {
				served = append(served, name)
				names[ticket] = ""
				current = ticket
			}
		}
	}
	must.Match(t, []string{"busy 1", "calm 1", "late 1", "busy 2", "calm 2", "busy 3"}, served)
}

func TestOneOwnerHasNotAllPlaces(t *testing.T) {
	t.Parallel()
	q := newQueue(3, 2)
	a, b, c := q.enter("greedy"), q.enter("greedy"), q.enter("greedy")
	if !has(a) || !has(b) || has(c) {
		t.Fatalf("the greedy owner has %v %v %v", has(a), has(b), has(c))
	}
	if other := q.enter("other"); !has(other) {
		t.Error("the place that is left was not given to another owner")
	}
	q.leave(a)
	if !has(c) {
		t.Error("the owner's next call did not get its place")
	}
}

func TestWhoLeavesTheLineTakesNoPlace(t *testing.T) {
	t.Parallel()
	q := newQueue(1, 1)
	running, gone, next := q.enter("a"), q.enter("a"), q.enter("b")
	q.leave(gone)
	if n := q.position(gone); n != 0 {
		t.Errorf("a call that left has place %d", n)
	}
	q.leave(running)
	if has(gone) || !has(next) {
		t.Errorf("the place went to %v (gone), %v (next)", has(gone), has(next))
	}
	q.leave(next)
	if q.free != 1 || len(q.lines) != 0 || len(q.turns) != 0 {
		t.Errorf("left behind: %+v", q)
	}
}

func TestACallThatWaitsForAPersonTakesNoPlace(t *testing.T) {
	b := newBench(t, policy.Ask, &probe{})
	b.slots = newQueue(1, 1)
	defer b.approvals.Join(onAsked(func(r approval.Request[message.ApprovalRequest]) {
		if r.CallID == "quick" {
			if err := b.approvals.Resolve(r.ID, approval.Verdict{Approve: true}); err != nil {
				t.Error(err)
			}
		}
	}))()
	for _, id := range []string{"a", "b"} {
		w, wake := b.submit(id, `{}`)
		for len(w.Call().Events(0)) == 0 { // until it is judged
			<-wake
		}
	}
	if f := b.call(t, "quick", `{}`); f.Return.Status != "success" {
		t.Errorf("got %+v", f.Return)
	}
	must.Do(t, b.Shutdown(t.Context()))
}
