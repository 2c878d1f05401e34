package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
	"github.com/toold/toold/tools"
)

// longArguments is the size in bytes from which arguments are recorded before they are analysed: a crash of the
// analysis would otherwise leave no record of the call.
const longArguments = 4 << 10

func (d *Dispatcher) receive(c *Call) *refusal {
	if c.rec != 0 {
		return nil
	}
	call := d.journalled(c)
	if c.keep && !c.elsewhere {
		call.Kept = c.keeping()
	}
	rec, fresh, err := d.opt.Journal.Receive(context.Background(), call)
	refused := d.taken(c, rec, fresh, err)
	c.kept = refused == nil && call.Kept != ""
	return refused
}

// begin makes call, decision and intent durable before the call runs. A ReadOnly call may run before it is journaled,
// provided nothing is sent to the client first.
func (d *Dispatcher) begin(c *Call, inv tools.Invocation, said *message.Decision) *refusal {
	switch {
	case c.rec != 0:
		c.kept = false
		if err := d.opt.Journal.Intend(c.rec, journalDecision(said)); err != nil {
			return &refusal{message.InternalError, "the decision cannot be journalled, so nothing ran: " + err.Error()}
		}
		return nil
	case inv.Traits().ReadOnly:
		return nil
	}
	rec, fresh, err := d.opt.Journal.Begin(context.Background(), d.journalled(c), journalDecision(said))
	return d.taken(c, rec, fresh, err)
}

// taken handles the result of recording a call. After a refusal conclude answers from c.lost or c.known.
func (d *Dispatcher) taken(c *Call, rec journal.Record, fresh bool, err error) *refusal {
	switch {
	case err != nil:
		d.opt.Log.Error("cannot journal a call", zap.String("call", c.ID), zap.Error(err))
		c.lost = notJournalled(err, fresh)
		if fresh {
			c.rec = rec.Key
		}
		return c.lost
	case !fresh:
		c.known = &rec
		return &refusal{message.DuplicateToolCall, "it is in the journal already"}
	}
	c.rec = rec.Key
	held := c.pending
	c.pending = nil
	for _, event := range held {
		c.emit(event)
	}
	return nil
}

func notJournalled(err error, recorded bool) *refusal {
	const operator = ". Ask the operator to look at the state directory (toold doctor)"
	switch {
	case errors.Is(err, journal.ErrUnknown):
		return &refusal{message.InternalError, "the call was not run now, and whether it ran before is unknown, because the journal cannot be read: " + err.Error() + operator + ", then send the call again with the same id: if it ran, it does not run twice"}
	case recorded:
		return &refusal{message.InternalError, "the call cannot be brought to the disk, so nothing ran: " + err.Error() + operator + ", then send the call again under a new id"}
	}
	return &refusal{message.InternalError, "the call cannot be journalled, so nothing ran: " + err.Error() + operator + "; the same id may be sent again then"}
}

func (d *Dispatcher) replay(c *Call, rec journal.Record) Final {
	if rec.ID != c.ID {
		return Final{Err: about(c.ID, message.DuplicateToolCall.Errorf("tool_call_id %q %s", c.ID, clash(rec.ID)))}
	}
	if rec.ArgsHash != c.argsHash() {
		return Final{Err: about(c.ID, message.DuplicateToolCall.Errorf("tool_call_id %q %s", c.ID, otherArguments))}
	}
	if len(rec.Result) == 0 {
		return d.withoutReturn(c, rec)
	}
	ret, err := message.Record(rec.Result).Return()
	if err != nil {
		return Final{Err: about(c.ID, message.InternalError.Errorf("the recorded return of tool call %q cannot be read: %v. It does not run again: look at what it changed, and use a new id", c.ID, err))}
	}
	ret.Replayed = true
	return Final{Return: &ret, Background: d.backgroundOf(c, &ret)}
}

// partMark separates the hash of an item's part from the hash of all its work in a record.
const partMark = "/"

// argsHash returns the recorded hash of tool and arguments; for an item's part it includes the hash of all the item's
// work.
func (c *Call) argsHash() string {
	if c.req.Item == "" {
		return c.hash
	}
	return c.hash + partMark + c.req.Work
}

func partID(item string, n int) string { return item + message.PartMark + strconv.Itoa(n) }

// A namesake is an id that must not exist beside a call's. The commands of a shell_call have its id with a number
// appended, so they could otherwise have the id of another call.
type namesake struct {
	id  string
	own bool // may exist only as a part of the same item
	any bool // must not exist at all; if false, not as a part
}

func (n namesake) clashes(c *Call, hash string) bool {
	_, work, isPart := strings.Cut(hash, partMark)
	if n.own {
		return !isPart || work != c.req.Work
	}
	return n.any || isPart
}

// namesakes returns the namesakes of a call. Those of an item's other parts are returned for its first part.
func (c *Call) namesakes() (all []namesake) {
	name := cmp.Or(c.req.Item, c.ID)
	if at := strings.LastIndex(name, message.PartMark); at > 0 {
		all = append(all, namesake{id: partID(name[:at], 1)})
	}
	if c.req.Item == "" {
		return append(all, namesake{id: partID(c.ID, 1)})
	}
	all = append(all, namesake{id: c.req.Item, any: true})
	for n := 1; n <= c.parts && c.ID == partID(c.req.Item, 1); n++ {
		id := partID(c.req.Item, n)
		all = append(all, namesake{id: id, own: true}, namesake{id: partID(id, 1)})
	}
	return all
}

// liveNamesake returns a clashing id of an unanswered call, or "". The caller holds mu.
func (d *Dispatcher) liveNamesake(c *Call) string {
	for _, n := range c.namesakes() {
		if other := d.calls[Key{c.key.Client, c.key.Agent, n.id}]; other != nil && n.clashes(c, other.argsHash()) {
			return n.id
		}
	}
	return ""
}

// findNamesake refuses a call if a clashing one is recorded.
func (d *Dispatcher) findNamesake(c *Call) *refusal {
	for _, n := range c.namesakes() {
		if d.opt.Journal.Lacks(c.key.Client, c.key.Agent, n.id) {
			continue
		}
		rec, err := d.opt.Journal.FindAs(context.Background(), c.key.Client, c.key.Agent, n.id)
		switch {
		case errors.Is(err, journal.ErrNotFound):
		case err != nil && c.Dialect == message.OpenAIShell:
			return d.taken(c, rec, false, fmt.Errorf("%w: %v", journal.ErrUnknown, err))
		case err == nil && n.clashes(c, rec.ArgsHash):
			return d.taken(c, rec, false, nil)
		}
	}
	return nil
}

// clash returns why a call's id cannot be used beside another id.
func clash(with string) string {
	return fmt.Sprintf("cannot be told from %q, which is used already: the commands of a shell_call have its id and a number. Use a new id for a new call", with)
}
