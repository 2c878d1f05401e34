package server

import (
	"slices"

	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/message"
)

// item is a request whose calls run in order, each judged after the one before, with one answer.
// They are separate in the journal, so a repeat continues after those that ran.
type item struct {
	sub     dispatch.Submission // the running part
	calls   []*dispatch.Call    // the ended ones
	returns []message.ToolReturn
}

func newItem(sub dispatch.Submission) *item {
	sub.Call = sub.Request.Calls[0]
	return &item{sub: sub}
}

// took records how the running part has ended, and reports whether to submit another one: not after
// a part that failed.
func (it *item) took(call *dispatch.Call, final dispatch.Final) (more bool) {
	if final.Err != nil {
		return false
	}
	it.calls, it.returns = append(it.calls, call), append(it.returns, *final.Return)
	n := len(it.returns)
	if !final.Return.Ended() || n == len(it.sub.Request.Calls) {
		return false
	}
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
	it := newItem(ss.submission(m))
	ss.mu.Lock()
	ss.items = append(ss.items, it)
	ss.mu.Unlock()
	ss.followPart(ss.srv.opt.Dispatch.Submit(it.sub), it)
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
		w.ss.followPart(w.ss.srv.opt.Dispatch.Submit(it.sub), it)
		return nil
	}
	if err := w.send(it.answer(final)); err != nil {
		return err
	}
	for _, c := range it.calls {
		w.ss.srv.opt.Dispatch.Delivered(c)
	}
	return nil
}
