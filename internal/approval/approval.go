// Package approval queues the calls that await approval.
//
// A request is a value to show and a deadline; an answer is yes or no. The package
// does not know what a call is or who may answer: the caller of Resolve checks that
// first. It keeps nothing on disk. A caller may rely on the first valid answer
// counting, and on every request ending by its deadline.
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
	ErrNoApprover = errors.New("no approver is connected")
	ErrExpired    = errors.New("no one answered before the deadline")
	ErrNotPending = errors.New("no such approval is pending")
)

// The words in Verdict.By when no person answered.
const (
	ByDeadline  = "deadline"  // Expires passed
	ByCancelled = "cancelled" // the context of Ask ended
)

// PartlyError reports that an answer counts, although its Answered function failed.
type PartlyError struct{ err error }

func (e *PartlyError) Error() string { return e.err.Error() }

// Settled, as the cause of the end of Ask's context, reports that the request was
// answered elsewhere. Approvers receive the Verdict.
type Settled struct{ Verdict Verdict }

func (s *Settled) Error() string { return "settled by " + s.Verdict.By + ": " + s.Verdict.Reason }

// Request is one question to a person, who sees the T.
type Request[T any] struct {
	ID      string    // unique among the pending requests
	CallID  string    // of the call whose run the question decides, else ""; several clients may use the same one
	Owner   string    // client of the call
	Expires time.Time // the zero time is in the past
	Show    T
	Again   bool  // it was asked before a restart: it also waits while no approver has joined
	Later   error // if this ends the context of Ask, the request will be asked again: approvers are not notified

	// Check, if set, refuses invalid answers: Resolve returns its error, and the request
	// continues to wait. It may be called concurrently.
	Check func(Verdict) error

	// Asked, if set, is called when the request waits.
	Asked func()

	// Answered, if set, receives the answer before anyone else, on the goroutine of
	// Resolve. It is not called for a request that ends without an answer. Resolve
	// returns its error as a *PartlyError; the answer counts.
	Answered func(Verdict) error
}

// Verdict is an answer. The zero Verdict refuses.
type Verdict struct {
	Approve    bool
	By         string // the approver
	Before     bool   // sent before the question, which no one has read
	Reason     string
	Escalation Escalation // escalation; with Approve only

	Remember  string // scope of a yes; "" or "once": this call
	Pattern   string // of commands, if Remember is "rule"
	Arguments string // replace those of the call; "": none
}

// Escalation is the escalation of the call's sandbox as the answer states it; see package escalation. The zero
// value adds nothing.
type Escalation struct{ Profile, Write, Network, Host string }

// Approver receives requests and their ends, sequentially and Asked first, on the goroutine of
// Ask, Resolve or Join. Its methods must not block, but may call the queue.
type Approver[T any] interface {
	Asked(Request[T])
	Resolved(Request[T], Verdict)
}

// Queue contains pending requests. Make it with New. Its methods may be called
// concurrently.
type Queue[T any] struct {
	mu        sync.Mutex
	pending   map[string]*entry[T]
	approvers map[*mailbox[T]]struct{}
}

// entry is a pending request. verdict is valid once done is closed.
type entry[T any] struct {
	request Request[T]
	verdict Verdict
	done    chan struct{}
}

// New returns an empty queue.
func New[T any]() *Queue[T] {
	return &Queue[T]{pending: map[string]*entry[T]{}, approvers: map[*mailbox[T]]struct{}{}}
}

// Ask shows r to every approver and waits for the first answer. The error is ErrNoApprover if none has joined
// (see Again), ErrExpired after r.Expires, or the cause of ctx.
func (q *Queue[T]) Ask(ctx context.Context, r Request[T]) (Verdict, error) {
	e, err := q.add(ctx, r)
	if err != nil {
		return Verdict{}, err
	}
	if r.Asked != nil {
		r.Asked()
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
		if r.Later != nil && errors.Is(cause, r.Later) && q.claim(e) {
			return Verdict{}, cause
		}
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
	if !r.Again && !q.hasApprover(r) {
		return nil, ErrNoApprover
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

// hasApprover reports whether an approver can answer r. The caller holds mu.
func (q *Queue[T]) hasApprover(r Request[T]) bool {
	for m := range q.approvers {
		if !m.views && m.takes(r) {
			return true
		}
	}
	return false
}

// giveUp ends e without an answer, unless one came first.
func (q *Queue[T]) giveUp(e *entry[T], v Verdict, why error) (Verdict, error) {
	if !q.claim(e) {
		<-e.done
		return e.verdict, nil
	}
	q.settle(e, v)
	return Verdict{}, why
}

// Resolve answers the pending request with this id and returns it. The first answer
// counts; later ones get ErrNotPending. A *PartlyError comes from the request's
// Answered. Any other error comes from its Check, and the request is still pending.
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

// claim removes e from the pending requests; the caller settles it. It returns false
// if e is answered. It compares entries, since ids may be reused.
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
