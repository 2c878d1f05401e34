package approval

import "sync"

// mailbox contains events for an approver. One goroutine at a time delivers them, so that they stay in order without
// a lock during calls. The queue's mu guards all fields except to.
type mailbox[T any] struct {
	to     Approver[T]
	views  bool         // the approver cannot answer
	mine   func(T) bool // which requests it receives; nil = all
	events []event[T]
	busy   bool // a goroutine is delivering
}

// event is a new request or, with a verdict, a resolved one.
type event[T any] struct {
	request Request[T]
	verdict *Verdict
}

// Join adds an approver and sends it every pending request. leave removes it: no call to a starts after leave
// returns, but one may still run. leave may be called repeatedly.
func (q *Queue[T]) Join(a Approver[T]) (leave func()) {
	return q.join(&mailbox[T]{to: a, busy: true})
}

// View is like Join for viewers, who cannot answer.
func (q *Queue[T]) View(a Approver[T]) (leave func()) {
	return q.join(&mailbox[T]{to: a, busy: true, views: true})
}

// JoinFor is like Join, for the requests for which mine returns true.
func (q *Queue[T]) JoinFor(a Approver[T], mine func(T) bool) (leave func()) {
	return q.join(&mailbox[T]{to: a, busy: true, mine: mine})
}

func (m *mailbox[T]) takes(r Request[T]) bool { return m.mine == nil || m.mine(r.Show) }

func (q *Queue[T]) join(m *mailbox[T]) (leave func()) {
	q.mu.Lock()
	for _, r := range q.sorted() {
		if m.takes(r) {
			m.events = append(m.events, event[T]{request: r})
		}
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

func (q *Queue[T]) post(ev event[T]) {
	for m := range q.approvers {
		if m.takes(ev.request) {
			m.events = append(m.events, ev)
		}
	}
}

// deliver delivers the events in mailboxes for which no other goroutine does.
func (q *Queue[T]) deliver() {
	q.mu.Lock()
	var idle []*mailbox[T]
	for m := range q.approvers {
		if len(m.events) > 0 && !m.busy {
			m.busy = true
			idle = append(idle, m)
		}
	}
	q.mu.Unlock()
	for _, m := range idle {
		q.empty(m)
	}
}

func (q *Queue[T]) empty(m *mailbox[T]) {
	for ev, ok := q.next(m); ok; ev, ok = q.next(m) {
		if ev.verdict == nil {
			m.to.Asked(ev.request)
		} else {
			m.to.Resolved(ev.request, *ev.verdict)
		}
	}
}

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
