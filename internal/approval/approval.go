// Package approval holds the calls that wait for a person.
//
// It does not know what a call is: a request is something to show and a
// deadline, an answer is yes or no with a reason and perhaps something besides. It
// does not know who may answer what either: whoever calls Resolve has checked that
// first, and whoever asks tells which answers count. Nothing is kept on disk.
package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Errors of a Queue.
var (
	ErrNobody     = errors.New("no approver is connected")
	ErrExpired    = errors.New("nobody answered before the deadline")
	ErrNotPending = errors.New("no such approval is pending")
)

// The words in Verdict.By when no person answered.
const (
	ByDeadline  = "deadline"  // Expires passed
	ByCancelled = "cancelled" // the context of Ask ended
)

// PartlyError reports that an answer counts, and that something that it wanted besides
// could not be done.
type PartlyError struct{ err error }

func (e *PartlyError) Error() string { return e.err.Error() }

// Settled, as the cause with which the context of Ask ends, says that the
// question has found an answer elsewhere. Approvers are told the Verdict.
type Settled struct{ Verdict Verdict }

func (s *Settled) Error() string { return "settled by " + s.Verdict.By + ": " + s.Verdict.Reason }

// Request is one question to a person. T is what is shown.
type Request[T any] struct {
	ID      string    // unique among the pending requests
	CallID  string    // several clients may use the same one
	Owner   string    // who asked for the call
	Expires time.Time // the zero time has passed: nobody is asked
	Show    T

	// Check, if set, refuses an answer that cannot count, such as one that gives what
	// nobody may give: Resolve returns its error, and the request waits on. It may be
	// called from several goroutines.
	Check func(Verdict) error

	// Answered, if set, is given the answer that counts before anybody else learns of it,
	// on the goroutine of Resolve. It is not called for a request that ends without an
	// answer. Its error is returned by Resolve: the answer counts all the same.
	Answered func(Verdict) error
}

// Verdict is an answer. The zero Verdict refuses.
type Verdict struct {
	Approve bool
	By      string // who answered
	Before  bool   // the answer was given before the question, which nobody has read
	Reason  string
	Widen   Widening // what a yes gives besides

	Remember  string // what else a yes counts for, "" or "once": nothing
	Pattern   string // of commands, for those who remember by one
	Arguments string // that a yes puts in the place of the call's; "" = none
}

// Widening is what a yes adds to the sandbox of the one call, in the words of the
// answer; see package widen. The zero Widening adds nothing.
type Widening struct{ Profile, Write, Network, Host string }

// Approver is told of requests and of their ends.
//
// The calls to one Approver come one at a time, Asked before Resolved for each
// request. They come on the goroutine of whoever asks, resolves or joins, so
// they must not block; they may call the queue. A panic in one is a bug of the
// approver and is not caught.
type Approver[T any] interface {
	Asked(Request[T])
	Resolved(Request[T], Verdict)
}

// Queue holds pending requests. Make it with New. Its methods may be called at
// the same time.
type Queue[T any] struct {
	mu        sync.Mutex
	pending   map[string]*entry[T]
	approvers map[*mailbox[T]]struct{}
}

// entry is a pending request. verdict may be read once done is closed.
type entry[T any] struct {
	request Request[T]
	verdict Verdict
	done    chan struct{}
}

// New makes an empty queue.
func New[T any]() *Queue[T] {
	return &Queue[T]{pending: map[string]*entry[T]{}, approvers: map[*mailbox[T]]struct{}{}}
}

// Ask shows r to every approver and waits for the first answer. The error is
// nil only when somebody answered: it is ErrNobody at once when no approver is
// joined, ErrExpired after r.Expires, and the cause of ctx when that ends
// first. An approver that leaves does not end the wait: another may come.
func (q *Queue[T]) Ask(ctx context.Context, r Request[T]) (Verdict, error) {
	e, err := q.add(ctx, r)
	if err != nil {
		return Verdict{}, err
	}
	q.deliver()

	timer := time.NewTimer(time.Until(r.Expires))
	defer timer.Stop()
	select {
	case <-e.done:
		return e.verdict, nil
	case <-timer.C:
		return q.giveUp(e, Verdict{By: ByDeadline, Reason: ErrExpired.Error()}, ErrExpired)
	case <-ctx.Done():
		cause := context.Cause(ctx)
		v := Verdict{By: ByCancelled, Reason: cause.Error()}
		if settled := (*Settled)(nil); errors.As(cause, &settled) {
			v = settled.Verdict
		}
		return q.giveUp(e, v, cause)
	}
}

// add registers r and puts it into every approver's mailbox.
func (q *Queue[T]) add(ctx context.Context, r Request[T]) (*entry[T], error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.attended() {
		return nil, ErrNobody
	}
	if time.Until(r.Expires) <= 0 {
		return nil, ErrExpired
	}
	if _, taken := q.pending[r.ID]; taken {
		return nil, fmt.Errorf("approval %q is already pending", r.ID)
	}
	e := &entry[T]{request: r, done: make(chan struct{})}
	q.pending[r.ID] = e
	q.post(event[T]{request: r})
	return e, nil
}

// attended reports whether somebody may answer. The caller holds mu.
func (q *Queue[T]) attended() bool {
	for m := range q.approvers {
		if !m.views {
			return true
		}
	}
	return false
}

// giveUp ends e without an answer, unless an answer was first: then that counts.
func (q *Queue[T]) giveUp(e *entry[T], v Verdict, why error) (Verdict, error) {
	if !q.claim(e) {
		<-e.done
		return e.verdict, nil
	}
	q.settle(e, v)
	return Verdict{}, why
}

// Resolve answers the pending request with this id and returns it. The first
// answer counts; every later one gets ErrNotPending. A *PartlyError comes from the
// request's Answered. Any other error is that of its Check, and it is still pending.
func (q *Queue[T]) Resolve(id string, v Verdict) (Request[T], error) {
	q.mu.Lock()
	e, ok := q.pending[id]
	q.mu.Unlock()
	if !ok {
		return Request[T]{}, ErrNotPending
	}
	if check := e.request.Check; check != nil {
		if err := check(v); err != nil {
			return Request[T]{}, err
		}
	}
	if !q.claim(e) {
		return Request[T]{}, ErrNotPending
	}
	var err error
	if e.request.Answered != nil {
		err = e.request.Answered(v)
	}
	q.settle(e, v)
	if err != nil {
		return e.request, &PartlyError{err}
	}
	return e.request, nil
}

// claim ends the wait of e for an answer; the caller settles it. It returns false when
// e has one already. It compares entries, not ids: an id may be in use again.
func (q *Queue[T]) claim(e *entry[T]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.pending[e.request.ID] != e {
		return false
	}
	delete(q.pending, e.request.ID)
	return true
}

// settle gives a claimed entry its verdict and notifies every approver.
func (q *Queue[T]) settle(e *entry[T], v Verdict) {
	q.mu.Lock()
	e.verdict = v
	close(e.done)
	q.post(event[T]{request: e.request, verdict: &v})
	q.mu.Unlock()
	q.deliver()
}

// Find returns the pending requests for a call id, the next to expire first.
// There are several when clients chose the same id.
func (q *Queue[T]) Find(callID string) []Request[T] {
	return slices.DeleteFunc(q.Pending(), func(r Request[T]) bool { return r.CallID != callID })
}

// Pending returns every pending request, the next to expire first.
func (q *Queue[T]) Pending() []Request[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.sorted()
}

// sorted returns the pending requests in order. The caller holds mu.
func (q *Queue[T]) sorted() []Request[T] {
	all := make([]Request[T], 0, len(q.pending))
	for _, e := range q.pending {
		all = append(all, e.request)
	}
	slices.SortFunc(all, func(a, b Request[T]) int {
		return cmp.Or(a.Expires.Compare(b.Expires), cmp.Compare(a.ID, b.ID))
	})
	return all
}
