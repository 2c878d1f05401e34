package dispatch

import "github.com/toold/toold/sandbox"

// conversation is whose calls may reach each other's servers.
type conversation struct{ client, agent, id string }

type lentLoopback struct {
	sandbox.Loopback
	calls int // that run in the background
}

// loopback is what a call may reach of the background calls of its conversation, and lends what
// it adds. A call with a grant, or in another sandbox, has none: its servers could pass that on.
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
