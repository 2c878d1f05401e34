// Package approval queues the calls that await approval. A request is a value to show and a deadline; the answer is
// yes or no. The caller of Resolve must check who may answer. Nothing is stored on disk. The first valid answer
// counts, and every request ends at its deadline.
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

// Values of Verdict.By without an answer.
const (
	ByDeadline  = "deadline"  // Request.Expires has passed
	ByCancelled = "cancelled" // the context of Ask has ended
)

// A PartlyError reports that the answer counts although Answered failed.
type PartlyError struct{ err error }

func (e *PartlyError) Error() string { return e.err.Error() }

// Settled, as the cause of Ask's context, means that the request was answered elsewhere. Approvers receive its
// Verdict.
type Settled struct{ Verdict Verdict }

func (s *Settled) Error() string { return "settled by " + s.Verdict.By + ": " + s.Verdict.Reason }

// Request is a question. Approvers see the T.
type Request[T any] struct {
	ID      string    // unique among the pending requests
	CallID  string    // call that the answer decides, or ""; clients may use the same id
	Expires time.Time // the zero time has passed
	Show    T
	Again   bool  // repeated after a restart; it waits even without approvers
	Later   error // if this ends Ask's context, the request will be repeated and approvers are not notified

	// Check, if set, rejects invalid answers: Resolve returns its error, and the request continues to wait. It may be
	// called concurrently.
	Check func(Verdict) error

	// Asked, if set, is called when the request waits.
	Asked func()

	// Answered, if set, is called with the answer before any approver is notified, on the goroutine of Resolve, which
	// returns its error as a *PartlyError. It is not called for a request that ends without an answer.
	Answered func(Verdict) error
}

// Verdict is an answer. The zero Verdict refuses.
type Verdict struct {
	Approve    bool
	By         string // name of the approver
	Conn       string // connection of the approver, and id of the answer there
	RequestID  string
	Before     bool // the answer was sent before the question, which no one has read
	Reason     string
	Escalation Escalation // with Approve only

	Remember  string // scope of a yes; "" or "once" = this call
	Pattern   string // of commands, if Remember is "rule"
	Arguments string // replacement for those of the call; "" = none
}

// Escalation is the escalation that the answer requests; see package escalation. The zero value adds nothing.
type Escalation struct{ Profile, Write, Network, Host string }

// Approver receives requests and their ends, sequentially, Asked first, on the goroutine of Ask, Resolve or Join. Its
// methods must not block. They may call the queue.
type Approver[T any] interface {
	Asked(Request[T])
	Resolved(Request[T], Verdict)
}

// Queue contains pending requests. It is created by New and safe for concurrent use.
type Queue[T any] struct {
	mu        sync.Mutex
	pending   map[string]*entry[T]
	approvers map[*mailbox[T]]struct{}
}

// entry is a pending request. Its verdict is valid once done is closed.
type entry[T any] struct {
	request Request[T]
	verdict Verdict
	done    chan struct{}
}

// New returns an empty queue.
func New[T any]() *Queue[T] {
	return &Queue[T]{pending: map[string]*entry[T]{}, approvers: map[*mailbox[T]]struct{}{}}
}

// Ask shows r to every approver and waits for the first answer. The error is ErrNoApprover (never with Again),
// ErrExpired, the cause of ctx, or that r.ID is already pending.
func (q *Queue[T]) Ask(ctx context.Context, r Request[T]) (Verdict, error) {
	e, err := q.add(ctx, r)
	if err != nil {
		return Verdict{}, err
	}
	if r.Asked != nil {
		r.Asked()
	}
	q.deliver()

	select {
	case <-e.done:
		return e.verdict, nil
	case <-time.After(time.Until(r.Expires)):
		return q.giveUp(e, Verdict{By: ByDeadline, Reason: ErrExpired.Error()}, ErrExpired)
	case <-ctx.Done():
		cause := context.Cause(ctx)
		if r.Later != nil && errors.Is(cause, r.Later) && q.claim(e) {
			return Verdict{}, cause
		}
		v := Verdict{By: ByCancelled, Reason: cause.Error()}
		if settled, is := errors.AsType[*Settled](cause); is {
			v = settled.Verdict
		}
		return q.giveUp(e, v, cause)
	}
}

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

// giveUp ends e without an answer, unless it was answered first.
func (q *Queue[T]) giveUp(e *entry[T], v Verdict, why error) (Verdict, error) {
	if !q.claim(e) {
		<-e.done
		return e.verdict, nil
	}
	q.settle(e, v)
	return Verdict{}, why
}

// Resolve answers a pending request. Later answers get ErrNotPending. A *PartlyError is from Answered.
// After any other error, which is from Check, the request continues to wait.
func (q *Queue[T]) Resolve(id string, v Verdict) error {
	q.mu.Lock()
	e, ok := q.pending[id]
	q.mu.Unlock()
	if !ok {
		return ErrNotPending
	}
	if check := e.request.Check; check != nil {
		if err := check(v); err != nil {
			return err
		}
	}
	if !q.claim(e) {
		return ErrNotPending
	}
	return q.answer(e, v)
}

// answer ends a claimed entry with an answer.
func (q *Queue[T]) answer(e *entry[T], v Verdict) error {
	final := Verdict{By: ByCancelled, Reason: "the answer could not be recorded"} // if Answered panics
	defer func() { q.settle(e, final) }()
	if e.request.Answered != nil {
		if err := e.request.Answered(v); err != nil {
			final = v
			final.RequestID = "" // the returned error acknowledges it
			return &PartlyError{err}
		}
	}
	final = v
	return nil
}

// claim removes e from the pending requests for settle. It returns false if e was answered. It compares entries,
// since ids may be reused.
func (q *Queue[T]) claim(e *entry[T]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.pending[e.request.ID] != e {
		return false
	}
	delete(q.pending, e.request.ID)
	return true
}

// settle sets the verdict of a claimed entry and notifies every approver.
func (q *Queue[T]) settle(e *entry[T], v Verdict) {
	q.mu.Lock()
	e.verdict = v
	close(e.done)
	q.post(event[T]{request: e.request, verdict: &v})
	q.mu.Unlock()
	q.deliver()
}

// Pending returns the pending requests, sorted by expiry.
func (q *Queue[T]) Pending() []Request[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.sorted()
}

// sorted returns the pending requests, sorted by expiry. The caller holds mu.
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
