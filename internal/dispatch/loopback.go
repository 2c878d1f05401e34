package dispatch

import "github.com/toold/toold/sandbox"

// conversation is whose calls may reach each other's servers.
type conversation struct{ client, agent, id string }

// lentLoopback has the servers of the background calls of one conversation.
type lentLoopback struct {
	sandbox.Loopback
	calls int // that run in the background
}

// loopback is what a call that is about to run may reach of the background calls of its
// conversation, and with lends what it adds to that. A call with a grant of a person's,
// or in another sandbox than the configured one, has none: what it may do others could
// do through its servers, and what it knows it could tell them.
func (d *Dispatcher) loopback(c *Call) (l *sandbox.Loopback, lends string, giveBack func()) {
	if c.widened != nil || c.profile != "" || !c.limit.IsZero() {
		return nil, "", func() {}
	}
	key := conversation{c.client, c.req.AgentID, c.req.ConversationID}
	d.mu.Lock()
	defer d.mu.Unlock()
	lent := d.lent[key]
	if c.of == nil {
		if lent == nil {
			return nil, "", func() {}
		}
		return &lent.Loopback, "", func() {}
	}
	if lent == nil {
		lent = &lentLoopback{}
		d.lent[key] = lent
	}
	lent.calls++
	return &lent.Loopback, c.ID, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if lent.calls--; lent.calls == 0 {
			delete(d.lent, key)
		}
	}
}
