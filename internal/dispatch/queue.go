package dispatch

import (
	"slices"
	"sync"
)

// queue assigns slots to running calls, at most each to one owner. A free slot goes to the first call of the next
// owner.
type queue struct {
	each int

	mu    sync.Mutex
	free  int
	lines map[string]*line // owners that have or want a slot
	turns []*line          // owners that want a slot, next one first
}

type line struct {
	owner   string
	running int
	waiting []*ticket
}

// ticket is a claim to a slot. Its holder calls leave once, whether or not it got the slot.
type ticket struct {
	line  *line
	ready chan struct{} // closed when the slot is assigned
}

func newQueue(places, each int) *queue {
	return &queue{each: each, free: places, lines: make(map[string]*line)}
}

func (q *queue) enter(owner string) *ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[owner]
	if l == nil {
		l = &line{owner: owner}
		q.lines[owner] = l
	}
	t := &ticket{line: l, ready: make(chan struct{})}
	l.waiting = append(l.waiting, t)
	if len(l.waiting) == 1 {
		q.turns = append(q.turns, l)
	}
	q.grant()
	return t
}

func (q *queue) grant() {
	for i := 0; q.free > 0 && i < len(q.turns); {
		l := q.turns[i]
		if l.running >= q.each {
			i++
			continue
		}
		close(l.waiting[0].ready)
		l.waiting = l.waiting[1:]
		l.running++
		q.free--
		q.turns = slices.Delete(q.turns, i, i+1)
		if len(l.waiting) > 0 {
			q.turns = append(q.turns, l)
		}
	}
}

func (q *queue) leave(t *ticket) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := t.line
	if i := slices.Index(l.waiting, t); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		if len(l.waiting) == 0 {
			q.turns = slices.DeleteFunc(q.turns, func(o *line) bool { return o == l })
		}
	} else {
		l.running--
		q.free++
	}
	if l.running == 0 && len(l.waiting) == 0 {
		delete(q.lines, l.owner)
	}
	q.grant()
}

// position returns a call's place in the queue, from 1, or 0 if it has a slot.
func (q *queue) position(t *ticket) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for round, more := 0, true; more; round++ {
		more = false
		for _, l := range q.turns {
			if len(l.waiting) <= round {
				continue
			}
			more = true
			n++
			if l.waiting[round] == t {
				return n
			}
		}
	}
	return 0
}
