package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
)

// course is events as a journal makes them: at random, but each may follow what came before.
func course(r *rand.Rand, t *table, n int) (made []event) {
	for i := range n {
		e := someEvent(r, t, i)
		if k := callOf(e); k != 0 && (t.calls[k] == nil || may(&t.calls[k].Record, e) != nil) {
			continue
		}
		if c, is := e.(*callEvent); is && t.find(&c.call) != nil {
			continue
		}
		t.apply(e, uint64(i), clock(i))
		made = append(made, e)
	}
	return made
}

func clock(i int) time.Time { return time.Unix(0, int64(i+1)).UTC() }

func someEvent(r *rand.Rand, t *table, i int) event {
	next, seq := t.next()
	k := int64(1 + r.IntN(int(next)))
	switch r.IntN(9) {
	case 0, 1:
		e := &callEvent{key: int64(next), daemon: fmt.Sprint(r.IntN(3)), state: string(Received), call: Call{Client: "c", ID: fmt.Sprint("id", i)}, request: sent{seq: seq, id: fmt.Sprint("m", i)}}
		if r.IntN(2) == 0 {
			e.answer = &returnEvent{key: int64(next), sent: sent{seq: seq + 1, id: fmt.Sprint("r", i)}, outcome: Outcome{Status: "success"}}
		}
		return e
	case 2:
		return &decisionEvent{k, string(Running), Decision{Action: "allow"}}
	case 3:
		return &startedEvent{k, clock(i), "p", "/spool"}
	case 4:
		return &returnEvent{key: k, sent: sent{seq: seq, id: fmt.Sprint("m", i)}, outcome: Outcome{Status: "error", Decision: Decision{By: "person"}}}
	case 5:
		return &deliveredEvent{k, clock(i)}
	case 6:
		return &messageEvent{Message{Seq: seq, Origin: message.Origin{ID: fmt.Sprint("m", i)}}}
	case 7:
		return &earlyCancelEvent{"c", fmt.Sprint("id", r.IntN(5)), int64(r.IntN(4))}
	}
	return &adoptedEvent{k, "9"}
}

// visible is a table without what takes it back.
func visible(t *table) table {
	v := *t
	v.undo, v.changed, v.load, v.number, v.before = nil, nil, nil, 0, numbers{}
	for _, r := range v.calls {
		r.last = 0
	}
	for client, ids := range v.earlyCancels {
		if len(ids) == 0 {
			delete(v.earlyCancels, client)
		}
	}
	return v
}

// Whatever could not be written leaves nothing behind: the next process, which reads the
// log, has the same table.
func TestATableThatIsTakenBackIsAsBefore(t *testing.T) {
	must.Long(t)
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		one, other := newTable(), newTable()
		kept := course(r, one, 60)
		one.commit()
		course(r, one, 30)
		one.rollback()
		at := 0
		for _, e := range kept {
			read := fresh(e)
			must.Do(t, decode(encoded(e), read, nil))
			other.apply(read, uint64(at), clock(at))
		}
		ignoreTimes(one)
		ignoreTimes(other)
		if diff := cmp.Diff(visible(other), visible(one), compare, cmp.AllowUnexported(table{}, numbers{})); diff != "" {
			t.Fatalf("seed %d (-read +taken back):\n%s", seed, diff)
		}
	}
}

// ignoreTimes keeps only whether something has happened.
func ignoreTimes(t *table) {
	for _, r := range t.calls {
		for _, at := range []*time.Time{&r.ReceivedAt, &r.DecidedAt, &r.IntendedAt, &r.StartedAt, &r.ReturnedAt, &r.DeliveredAt} {
			if !at.IsZero() {
				*at = clock(0)
			}
		}
	}
}

func fresh(e event) event {
	return reflect.New(reflect.TypeOf(e).Elem()).Interface().(event)
}

func TestACallGoesThroughItsStatesOnce(t *testing.T) {
	t.Parallel()
	tab := newTable()
	tab.apply(&callEvent{key: 1, state: string(Received), call: Call{Client: "c", ID: "x"}, request: sent{seq: 1}}, 1, clock(0))
	steps := []struct {
		e    event
		want error
	}{
		{&startedEvent{key: 1}, ErrState},
		{&deliveredEvent{key: 1}, ErrState},
		{&decisionEvent{1, string(Waiting), Decision{Action: "ask"}}, nil},
		{&decisionEvent{1, string(Running), Decision{Action: "allow"}}, nil},
		{&decisionEvent{1, string(Running), Decision{Action: "allow"}}, ErrState},
		{&startedEvent{key: 1, process: "p"}, nil},
		{&returnEvent{key: 1, sent: sent{seq: 2}}, nil},
		{&returnEvent{key: 1, sent: sent{seq: 3}}, ErrState},
		{&decisionEvent{1, string(Running), Decision{}}, ErrState},
		{&deliveredEvent{key: 1}, nil},
		{&deliveredEvent{key: 1}, nil},
	}
	for i, s := range steps {
		err := may(&tab.calls[1].Record, s.e)
		if !errors.Is(err, s.want) || err == nil && s.want != nil {
			t.Errorf("step %d, %T: %v, want %v", i, s.e, err, s.want)
		}
		if err == nil {
			tab.apply(s.e, uint64(i), clock(i))
		}
	}
	if r := tab.find(&Call{Client: "c", ID: "x"}); r == nil || r.State != Delivered || r.Decision.Action != "allow" || tab.lastSeq != 2 {
		t.Errorf("the call is %+v", r)
	}
}
