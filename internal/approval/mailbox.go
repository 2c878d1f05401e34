package approval

import "sync"

// mailbox holds what an approver was not told yet. One goroutine at a time
// empties it, which keeps the order without a goroutine of its own and without
// holding a lock while the approver is called. All fields but to are guarded
// by the queue's mu.
type mailbox[T any] struct {
	to     Approver[T]
	views  bool // it answers nothing
	events []event[T]
	busy   bool // a goroutine is emptying it, and will also tell what is posted meanwhile
}

// event is a request that was asked, or resolved when it has a verdict.
type event[T any] struct {
	request Request[T]
	verdict *Verdict
}

// Join makes a an approver until leave is called. It is told every pending
// request before Join returns. After leave no new call to a begins, though one
// under way on another goroutine may still be running. Calling leave again
// does nothing.
func (q *Queue[T]) Join(a Approver[T]) (leave func()) {
	return q.join(&mailbox[T]{to: a, busy: true})
}

// View is Join for somebody who answers nothing: a request for which nobody else is there
// is not asked.
func (q *Queue[T]) View(a Approver[T]) (leave func()) {
	return q.join(&mailbox[T]{to: a, busy: true, views: true})
}

func (q *Queue[T]) join(m *mailbox[T]) (leave func()) {
	q.mu.Lock()
	for _, r := range q.sorted() {
		m.events = append(m.events, event[T]{request: r})
	}
	q.approvers[m] = struct{}{}
	q.mu.Unlock()
	q.empty(m)

	return sync.OnceFunc(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.approvers, m)
		m.events = nil
	})
}

// post puts ev into every mailbox. The caller holds mu.
func (q *Queue[T]) post(ev event[T]) {
	for m := range q.approvers {
		m.events = append(m.events, ev)
	}
}

// deliver empties the mailboxes that no other goroutine is emptying.
func (q *Queue[T]) deliver() {
	q.mu.Lock()
	var mine []*mailbox[T]
	for m := range q.approvers {
		if len(m.events) > 0 && !m.busy {
			m.busy = true
			mine = append(mine, m)
		}
	}
	q.mu.Unlock()
	for _, m := range mine {
		q.empty(m)
	}
}

// empty tells m's approver everything in m, one event at a time so that it
// stops when the approver leaves.
func (q *Queue[T]) empty(m *mailbox[T]) {
	for ev, ok := q.next(m); ok; ev, ok = q.next(m) {
		if ev.verdict == nil {
			m.to.Asked(ev.request)
		} else {
			m.to.Resolved(ev.request, *ev.verdict)
		}
	}
}

// next takes the oldest event out of m. When there is none, m is left to the
// next goroutine that posts.
func (q *Queue[T]) next(m *mailbox[T]) (ev event[T], ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(m.events) == 0 {
		m.busy = false
		return ev, false
	}
	ev, m.events = m.events[0], m.events[1:]
	return ev, true
}
