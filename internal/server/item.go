package server

import (
	"context"
	"slices"
	"sync"

	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/message"
)

// item is a request whose calls run in order, each decided after the previous one ended, with a single answer. They
// are separate calls in the journal, so that a repeated request continues after those that ran.
type item struct {
	of      *session            // nil for an HTTP request
	sub     dispatch.Submission // the running part
	calls   []*dispatch.Call    // ended parts
	returns []message.ToolReturn

	mu      sync.Mutex // held while a part is submitted and while sub.Call changes
	stopped *string    // why no further part may run; nil: not stopped
}

// newItem returns an item of a session, or of an HTTP request if of is nil. Callers pass it to dropItems at the end.
func (s *Server) newItem(of *session, sub dispatch.Submission) *item {
	sub.Call = sub.Request.Calls[0]
	it := &item{of: of, sub: sub}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items[it] = struct{}{}
	return it
}

func (s *Server) dropItems(items ...*item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range items {
		delete(s.items, it)
	}
}

// unanswered returns the items of a client ("": of all) with an id ("": any).
func (s *Server) unanswered(client, id string) (found []*item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for it := range s.items {
		ofClient := client == "" || it.sub.Client == client
		if ofClient && (id == "" || it.sub.Request.Item == id) {
			found = append(found, it)
		}
	}
	return found
}

// submit submits the current part. It does not run if the item is stopped.
func (it *item) submit(to *dispatch.Dispatcher) *dispatch.Watcher {
	it.mu.Lock()
	defer it.mu.Unlock()
	it.sub.Stopped = it.stopped
	return to.Submit(it.sub)
}

// stop prevents further parts from running. Callers then cancel the running part, if any.
func (it *item) stop(reason string) {
	it.mu.Lock()
	defer it.mu.Unlock()
	it.stopped = &reason
}

// whose returns a key with only the client and agent of k.
func whose(k dispatch.Key) dispatch.Key { return dispatch.Key{Client: k.Client, Agent: k.Agent} }

func (it *item) whose() dispatch.Key {
	return dispatch.Key{Client: it.sub.Client, Agent: it.sub.Request.AgentID}
}

// stop cancels the calls that m names, and items of which no part runs now. It reports whether there were any. If m
// has an id without an agent, it means the agents whose calls or items this connection started or follows or, if there
// are none, all agents.
func (ss *session) stop(m *message.Cancel) (found bool) {
	calls, items := ss.srv.opt.Dispatch.Find(ss.stoppable(), m.CallID), ss.srv.unanswered(ss.stoppable(), m.CallID)
	var own []dispatch.Key
	for _, c := range calls {
		if !m.All && ss.follows(c) {
			own = append(own, whose(c.Key()))
		}
	}
	for _, it := range items {
		if !m.All && it.of == ss {
			own = append(own, it.whose())
		}
	}
	isMeant := func(k dispatch.Key) bool {
		if m.AgentID != nil {
			return k.Agent == *m.AgentID
		}
		return len(own) == 0 || slices.Contains(own, whose(k))
	}
	items = slices.DeleteFunc(items, func(it *item) bool { return !isMeant(it.whose()) })
	for _, it := range items {
		it.stop(m.Reason)
	}
	for _, c := range ss.srv.opt.Dispatch.Find(ss.stoppable(), m.CallID) { // again: a part may have started
		if isMeant(c.Key()) {
			c.Cancel(m.Reason)
			found = true
		}
	}
	for _, it := range items {
		it.cancelRest(ss.srv.opt.Dispatch)
	}
	return found || len(items) > 0
}

func (it *item) isLast() bool {
	it.mu.Lock()
	defer it.mu.Unlock()
	return it.sub.Call.ID == it.sub.Request.Calls[len(it.sub.Request.Calls)-1].ID
}

// cancelRest cancels in advance the remaining parts of a stopped item if none runs now. The client may have disconnected,
// and may send the item again.
func (it *item) cancelRest(d *dispatch.Dispatcher) {
	isPart := func(c *dispatch.Call) bool { return whose(c.Key()) == it.whose() }
	if item := it.sub.Request.Item; !it.isLast() && !slices.ContainsFunc(d.Find(it.sub.Client, item), isPart) {
		d.CancelEarly(context.Background(), it.sub.Client, &it.sub.Request.AgentID, item)
	}
}

// took records how the current part ended. It reports whether to submit the next one, but not after a failed part.
func (it *item) took(call *dispatch.Call, final dispatch.Final) (more bool) {
	if final.Err != nil {
		return false
	}
	it.calls, it.returns = append(it.calls, call), append(it.returns, *final.Return)
	n := len(it.returns)
	if !final.Return.Ended() || n == len(it.sub.Request.Calls) {
		return false
	}
	it.mu.Lock()
	defer it.mu.Unlock()
	it.sub.Call = it.sub.Request.Calls[n]
	return true
}

func (it *item) answer(final dispatch.Final) any {
	if final.Err == nil {
		return it.sub.Request.Answer(it.returns...)
	}
	e := *final.Err
	e.CallID = it.sub.Request.Item
	return &e
}

func (ss *session) findItem(is func(*item) bool) *item {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if i := slices.IndexFunc(ss.items, is); i >= 0 {
		return ss.items[i]
	}
	return nil
}

func (ss *session) requestItem(m *message.Request) {
	if !ss.may("request calls", m.Item, Agent) {
		return
	}
	other := ss.findItem(func(it *item) bool { return it.sub.Request.Item == m.Item && it.sub.Request.AgentID == m.AgentID })
	switch {
	case other == nil:
	case other.sub.Request.Work == m.Work:
		return
	default:
		ss.refuse(message.DuplicateToolCall, m.Item, "this id belongs to a call with other arguments; use a new id for a new call")
		return
	}
	it := ss.srv.newItem(ss, ss.submission(m))
	ss.mu.Lock()
	ss.items = append(ss.items, it)
	ss.mu.Unlock()
	ss.followPart(it.submit(ss.srv.opt.Dispatch), it)
}

func (w *writer) concludePart(it *item, call *dispatch.Call, final dispatch.Final) error {
	w.ss.mu.Lock()
	more := it.took(call, final)
	if !more {
		w.ss.items = slices.DeleteFunc(w.ss.items, func(other *item) bool { return other == it })
	}
	w.ss.mu.Unlock()
	notify(w.ss.freed)
	if more {
		w.ss.followPart(it.submit(w.ss.srv.opt.Dispatch), it)
		return nil
	}
	w.ss.srv.dropItems(it)
	if err := w.send(it.answer(final)); err != nil {
		return err
	}
	for _, c := range it.calls {
		w.ss.srv.opt.Dispatch.Delivered(c)
	}
	return nil
}
