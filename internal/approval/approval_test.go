package approval_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/must"
)

// person is an approver who writes down what they are told and, if answer is
// set, reacts to a request.
type person struct {
	answer func(approval.Request[string])

	mu    sync.Mutex
	heard []string
}

func (p *person) Asked(r approval.Request[string]) {
	p.hear("asked " + r.ID)
	if p.answer != nil {
		p.answer(r)
	}
}

func (p *person) Resolved(r approval.Request[string], v approval.Verdict) {
	p.hear(strings.TrimSpace(fmt.Sprintf("resolved %s %v by %s %s", r.ID, v.Approve, v.By, v.RequestID)))
}

func (p *person) hear(s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = append(p.heard, s)
}

func (p *person) told() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.heard...)
}

func request(id string) approval.Request[string] {
	return approval.Request[string]{ID: id, CallID: "call-" + id, Expires: time.Now().Add(time.Minute), Show: "rm x"}
}

// answerOf is what Ask returned.
type answerOf struct {
	verdict approval.Verdict
	err     error
}

// ask asks on its own goroutine, which ends when the request does.
func ask(ctx context.Context, q *approval.Queue[string], r approval.Request[string]) <-chan answerOf {
	got := make(chan answerOf, 1)
	go func() {
		v, err := q.Ask(ctx, r)
		got <- answerOf{v, err}
	}()
	return got
}

func wantHeard(t *testing.T, p *person, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, p.told()); diff != "" {
		t.Errorf("the approver heard (-want +got):\n%s", diff)
	}
}

func TestNobodyToAskIsAnErrorAtOnce(t *testing.T) {
	t.Parallel()
	q := approval.New[string]()
	if _, err := q.Ask(t.Context(), request("1")); !errors.Is(err, approval.ErrNoApprover) {
		t.Errorf("error is %v, want ErrNoApprover", err)
	}
	leave := q.Join(&person{})
	leave()
	leave()
	if _, err := q.Ask(t.Context(), request("1")); !errors.Is(err, approval.ErrNoApprover) {
		t.Errorf("after the approver left: error is %v, want ErrNoApprover", err)
	}
}

func TestTheFirstAnswerCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := approval.New[string]()
		ann, bob := &person{}, &person{}
		defer q.Join(ann)()
		defer q.Join(bob)()
		got := ask(t.Context(), q, request("1"))
		synctest.Wait()

		must.Do(t, q.Resolve("1", approval.Verdict{By: "ann", Reason: "no"}))
		if err := q.Resolve("1", approval.Verdict{Approve: true, By: "bob"}); !errors.Is(err, approval.ErrNotPending) {
			t.Errorf("second answer: error is %v, want ErrNotPending", err)
		}
		a := <-got
		if a.err != nil || a.verdict != (approval.Verdict{By: "ann", Reason: "no"}) {
			t.Errorf("Ask returned %+v", a)
		}
		wantHeard(t, ann, "asked 1", "resolved 1 false by ann")
		wantHeard(t, bob, "asked 1", "resolved 1 false by ann")
	})
}

func TestAnApproverMayAnswerWhileBeingAsked(t *testing.T) {
	t.Parallel()
	q := approval.New[string]()
	p := &person{answer: func(r approval.Request[string]) {
		_ = q.Resolve(r.ID, approval.Verdict{Approve: true, By: "p"})
	}}
	defer q.Join(p)()
	v, err := q.Ask(t.Context(), request("1"))
	if err != nil || !v.Approve {
		t.Errorf("Ask returned %+v, %v", v, err)
	}
	wantHeard(t, p, "asked 1", "resolved 1 true by p")
}

func TestTheDeadlineRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := approval.New[string]()
		p := &person{}
		defer q.Join(p)()
		start := time.Now()
		v, err := q.Ask(t.Context(), request("1"))
		if !errors.Is(err, approval.ErrExpired) || v.Approve {
			t.Errorf("Ask returned %+v, %v; want ErrExpired", v, err)
		}
		if waited := time.Since(start); waited != time.Minute {
			t.Errorf("waited %v, want 1m", waited)
		}
		if err := q.Resolve("1", approval.Verdict{Approve: true}); !errors.Is(err, approval.ErrNotPending) {
			t.Errorf("answer after the deadline: error is %v, want ErrNotPending", err)
		}
		wantHeard(t, p, "asked 1", "resolved 1 false by deadline")
	})
}

func TestARequestWithoutDeadlineIsNotShown(t *testing.T) {
	t.Parallel()
	q := approval.New[string]()
	p := &person{}
	defer q.Join(p)()
	if _, err := q.Ask(t.Context(), approval.Request[string]{ID: "1"}); !errors.Is(err, approval.ErrExpired) {
		t.Errorf("error is %v, want ErrExpired", err)
	}
	wantHeard(t, p)
}

func TestCancellingEndsTheWaitWithItsCause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := approval.New[string]()
		p := &person{}
		defer q.Join(p)()
		gone := errors.New("the client went away")
		ctx, cancel := context.WithCancelCause(t.Context())
		got := ask(ctx, q, request("1"))
		synctest.Wait()
		cancel(gone)
		if a := <-got; !errors.Is(a.err, gone) || a.verdict.Approve {
			t.Errorf("Ask returned %+v, want the cause", a)
		}
		wantHeard(t, p, "asked 1", "resolved 1 false by cancelled")
		if _, err := q.Ask(ctx, request("2")); !errors.Is(err, gone) {
			t.Errorf("asking with a context that has ended: %v", err)
		}
	})
}

func TestALaterApproverIsToldWhatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := approval.New[string]()
		leave := q.Join(&person{})
		second := ask(t.Context(), q, request("2"))
		first := request("1")
		first.Expires = first.Expires.Add(-time.Second)
		firstGot := ask(t.Context(), q, first)
		synctest.Wait()
		leave() // does not end the waits

		p := &person{}
		defer q.Join(p)()
		wantHeard(t, p, "asked 1", "asked 2")
		for _, r := range q.Pending() {
			if err := q.Resolve(r.ID, approval.Verdict{Approve: true, By: "p"}); err != nil {
				t.Error(err)
			}
		}
		if a, b := <-firstGot, <-second; !a.verdict.Approve || !b.verdict.Approve {
			t.Errorf("answers are %+v and %+v", a, b)
		}
		if n := len(q.Pending()); n != 0 {
			t.Errorf("%d requests still wait", n)
		}
	})
}

func TestAnIDCannotWaitTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := approval.New[string]()
		defer q.Join(&person{})()
		got := ask(t.Context(), q, request("1"))
		synctest.Wait()
		if _, err := q.Ask(t.Context(), request("1")); err == nil {
			t.Error("a second request with the same id was accepted")
		}
		if err := q.Resolve("1", approval.Verdict{}); err != nil {
			t.Error(err)
		}
		<-got
	})
}

// Under the race detector: everybody at once, and still one answer each and
// Asked before Resolved for every approver.
func TestManyAskAndManyAnswer(t *testing.T) {
	t.Parallel()
	q := approval.New[string]()
	people := make([]*person, 4)
	for i := range people {
		people[i] = &person{answer: func(r approval.Request[string]) {
			_ = q.Resolve(r.ID, approval.Verdict{Approve: true, By: "someone"})
		}}
		defer q.Join(people[i])()
	}
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			v, err := q.Ask(t.Context(), request(fmt.Sprint(i)))
			if err != nil || !v.Approve {
				t.Errorf("Ask %d returned %+v, %v", i, v, err)
			}
		})
	}
	wg.Wait()
	for _, p := range people {
		asked := map[string]bool{}
		for _, h := range p.told() {
			var id string
			if n, _ := fmt.Sscanf(h, "asked %s", &id); n == 1 {
				asked[id] = true
			} else if _, _ = fmt.Sscanf(h, "resolved %s", &id); !asked[id] {
				t.Fatalf("heard %q before it was asked", h)
			}
		}
	}
}

func TestApproversAreToldOfAnAnswerThatWasFoundElsewhere(t *testing.T) {
	t.Parallel()
	q, ada := approval.New[string](), &person{}
	defer q.Join(ada)()
	ctx, settle := context.WithCancelCause(t.Context())
	settled := &approval.Settled{Verdict: approval.Verdict{Approve: true, By: "policy"}}
	ada.answer = func(approval.Request[string]) { settle(settled) }
	if _, err := q.Ask(ctx, request("a")); !errors.Is(err, settled) {
		t.Errorf("Ask returned %v", err)
	}
	if diff := cmp.Diff([]string{"asked a", "resolved a true by policy"}, ada.told()); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

func TestAnAnswerThatCannotCountLeavesTheRequestOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := approval.New[string]()
		ann := &person{}
		defer q.Join(ann)()
		tooMuch := errors.New("too much")
		r := request("1")
		r.Check = func(v approval.Verdict) error {
			if v.Escalation.Network == "full" {
				return tooMuch
			}
			return nil
		}
		got := ask(t.Context(), q, r)
		synctest.Wait()

		if err := q.Resolve("1", approval.Verdict{Approve: true, Escalation: approval.Escalation{Network: "full"}}); !errors.Is(err, tooMuch) {
			t.Errorf("error is %v, want that of Check", err)
		}
		if len(q.Pending()) != 1 {
			t.Error("the request is not pending any more")
		}
		want := approval.Verdict{Approve: true, By: "ann", Escalation: approval.Escalation{Network: "proxy"}}
		if err := q.Resolve("1", want); err != nil {
			t.Errorf("the second answer: %v", err)
		}
		if a := <-got; a.err != nil || a.verdict != want {
			t.Errorf("Ask returned %+v", a)
		}
		wantHeard(t, ann, "asked 1", "resolved 1 true by ann")
	})
}

func TestAQuestionThatIsAskedLaterIsNotResolved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := approval.New[string]()
		p := &person{}
		defer q.Join(p)()
		stopping := errors.New("stopping")
		ctx, stop := context.WithCancelCause(t.Context())
		r := request("1")
		r.Later = stopping
		got := ask(ctx, q, r)
		synctest.Wait()
		stop(fmt.Errorf("because: %w", stopping))
		if a := <-got; !errors.Is(a.err, stopping) {
			t.Errorf("Ask returned %+v", a)
		}
		wantHeard(t, p, "asked 1")
		if err := q.Resolve("1", approval.Verdict{Approve: true}); !errors.Is(err, approval.ErrNotPending) {
			t.Errorf("an answer meanwhile: %v", err)
		}
	})
}

func TestAQuestionThatIsAskedAgainWaitsForAnApprover(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := approval.New[string]()
		r := request("1")
		r.Again = true
		got := ask(t.Context(), q, r)
		synctest.Wait()
		p := &person{answer: func(r approval.Request[string]) {
			_ = q.Resolve(r.ID, approval.Verdict{Approve: true, By: "ann"})
		}}
		defer q.Join(p)()
		if a := <-got; a.err != nil || !a.verdict.Approve {
			t.Errorf("Ask returned %+v", a)
		}
	})
}

// Who answers gets one acknowledgement: an error, where the answer counts in part.
func TestAnAnswerThatCountsInPartIsAcknowledgedByItsError(t *testing.T) {
	t.Parallel()
	for _, unwritten := range []error{nil, errors.New("no disk")} {
		synctest.Test(t, func(t *testing.T) {
			q, p := approval.New[string](), &person{}
			defer q.Join(p)()
			r := request("1")
			r.Answered = func(approval.Verdict) error { return unwritten }
			got := ask(t.Context(), q, r)
			synctest.Wait()
			heard := "resolved 1 true by ann"
			if unwritten == nil {
				heard += " q1"
			}
			err := q.Resolve("1", approval.Verdict{Approve: true, By: "ann", RequestID: "q1"})
			if _, partly := errors.AsType[*approval.PartlyError](err); partly != (unwritten != nil) {
				t.Errorf("got %v", err)
			}
			if a := <-got; a.err != nil || !a.verdict.Approve {
				t.Errorf("Ask returned %+v", a)
			}
			wantHeard(t, p, "asked 1", heard)
		})
	}
}

// An answer whose record fails by a panic approves nothing, and leaves no call waiting.
func TestAPanicWhileAnAnswerIsRecordedRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := approval.New[string]()
		p := &person{}
		defer q.Join(p)()
		done := make(chan approval.Verdict)
		go func() {
			r := approval.Request[string]{ID: "a", Expires: time.Now().Add(time.Hour), Answered: func(approval.Verdict) error { panic("no disk") }}
			v, _ := q.Ask(t.Context(), r)
			done <- v
		}()
		synctest.Wait()
		func() {
			defer func() { _ = recover() }()
			q.Resolve("a", approval.Verdict{Approve: true, By: "ada"})
		}()
		if v := <-done; v.Approve {
			t.Errorf("got %+v", v)
		}
	})
}
