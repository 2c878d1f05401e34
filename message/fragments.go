package message

import (
	"cmp"
	"math"
	"slices"
)

// Limits of a Decoder that sets none.
const (
	defaultFragmentCalls = 128
	defaultFragmentBytes = 16 << 20
)

// collection has the calls of a run whose fragments arrived since its last stop_reason. They become a request only if
// the next stop_reason says that the model waits for them.
type collection struct {
	origin  Origin // of the first fragment
	lastSeq int64
	calls   []*ToolCall
}

// fragmentOf returns the fragment in a request, or nil if its calls are complete. A fragment is an object in
// tool_calls, or a tool_call without a name whose id is being collected.
func (d *Decoder) fragmentOf(w *wireRequest) *wireCall {
	if w.ToolCalls.fragment != nil {
		return w.ToolCalls.fragment
	}
	c := w.ToolCall
	if c == nil || len(w.ToolCalls.items) > 0 || cmp.Or(c.Name, c.ToolName) != "" {
		return nil
	}
	if len(d.find(c.CallID, w.Origin)) == 0 {
		return nil
	}
	return c
}

// of reports whether a collection belongs to an agent's conversation. Ids may repeat across agents.
func (c *collection) of(from Origin) bool {
	return c.origin.AgentID == from.AgentID && c.origin.ConversationID == from.ConversationID
}

// found is a call that is being collected, with its run.
type found struct {
	run *collection
	*ToolCall
}

// find returns the calls being collected that a frame from an origin may mean by an id. If it names no agent or
// conversation, it may mean those of any.
func (d *Decoder) find(id string, from Origin) (all []found) {
	for _, run := range d.runs {
		as := Origin{AgentID: cmp.Or(from.AgentID, run.origin.AgentID), ConversationID: cmp.Or(from.ConversationID, run.origin.ConversationID)}
		for _, f := range run.calls {
			if f.ID == id && run.of(as) {
				all = append(all, found{run, f})
			}
		}
	}
	return all
}

// forget drops the fragments of a call that arrived complete, if only one collected call can be meant.
func (d *Decoder) forget(id string, from Origin) {
	all := d.find(id, from)
	if len(all) != 1 {
		return
	}
	run, f := all[0].run, all[0].ToolCall
	d.calls--
	d.bytes -= len(f.Arguments)
	run.calls = slices.DeleteFunc(run.calls, func(c *ToolCall) bool { return c == f })
	d.runs = slices.DeleteFunc(d.runs, func(c *collection) bool { return len(c.calls) == 0 })
}

// collect adds a fragment to its run. If problem is not empty, it says why the call must not run. A fragment whose seq_id
// is not above the last one is ignored: it belongs to a stream that is sent again.
func (d *Decoder) collect(x *decoding, w *wireRequest, c *wireCall, problem string) {
	if e := checkID(c.CallID, "tool_call_id", c.faults); e != nil {
		x.errs = append(x.errs, e)
		return
	}
	all := d.find(c.CallID, w.Origin)
	if len(all) > 1 {
		for _, one := range all {
			one.refuse("a fragment that may be a part of it, or of another agent's call, was not joined; send agent_id and conversation_id with each")
		}
		x.errorf(InvalidFrame, "this fragment may be a part of the calls of several agents or conversations, so it is part of none, and they will not run; send agent_id and conversation_id with each").CallID = c.CallID
		return
	}
	run, f := d.run(w.Origin), (*ToolCall)(nil)
	if len(all) > 0 {
		run, f = all[0].run, all[0].ToolCall
	}
	if w.SeqID != nil && run != nil {
		if *w.SeqID <= run.lastSeq {
			return
		}
		run.lastSeq = *w.SeqID
	}
	if f == nil {
		if f = d.begin(run, w, c.CallID); f == nil {
			x.errorf(InvalidFrame, "this fragment begins another call while fragments of %d calls are being collected, which is the limit; send stop_reason, or whole calls", d.calls).CallID = c.CallID
			return
		}
	}
	f.refuse(problem)
	d.extend(f, c)
}

// run returns the collection of a run of an agent's conversation, or nil. All runs without an id share one.
func (d *Decoder) run(from Origin) *collection {
	i := slices.IndexFunc(d.runs, func(c *collection) bool { return c.origin.RunID == from.RunID && c.of(from) })
	if i < 0 {
		return nil
	}
	return d.runs[i]
}

// begin adds a call to a run, or to a new one if run is nil. It returns nil if there are too many calls.
func (d *Decoder) begin(run *collection, w *wireRequest, id string) *ToolCall {
	if d.calls == cmp.Or(max(d.MaxFragmentCalls, 0), defaultFragmentCalls) {
		return nil
	}
	d.calls++
	if run == nil {
		run = &collection{origin: w.Origin, lastSeq: math.MinInt64}
		if w.SeqID != nil {
			run.lastSeq = *w.SeqID
		}
		d.runs = append(d.runs, run)
	}
	f := &ToolCall{ID: id}
	run.calls = append(run.calls, f)
	return f
}

// extend adds what a fragment has of a call's name and arguments. It refuses the call if they cannot be joined.
func (d *Decoder) extend(f *ToolCall, c *wireCall) {
	f.refuse(sentence(c.faults))
	for _, name := range []string{c.ToolName, c.Name} {
		f.Name = cmp.Or(f.Name, name)
		if name != "" && name != f.Name {
			f.refuse("its fragments name two tools; send one name")
		}
	}
	if len(c.Arguments) == 0 {
		return
	}
	piece, err := unquote(c.Arguments)
	switch {
	case err != nil:
		f.refuse("the arguments of a fragment " + err.Error())
	case d.bytes+len(piece) > cmp.Or(max(d.MaxFragmentBytes, 0), defaultFragmentBytes):
		f.refuse("its fragments are longer than toold collects; send the call whole")
	default:
		f.Arguments = append(f.Arguments, piece...)
		d.bytes += len(piece)
	}
}

// lettaStop handles the end of a streamed step. As in letta-code, end_turn also requests approval of the streamed
// calls. After any other reason no client waits for them.
func (d *Decoder) lettaStop(x *decoding) {
	var w wireStop
	faults := x.bind(&w)
	awaited := !x.refuse(faults) && (w.StopReason == "requires_approval" || w.StopReason == "end_turn")
	ended := d.ended(&w)
	if len(ended) > 0 && slices.ContainsFunc(ended, func(c *collection) bool { return !c.of(ended[0].origin) }) {
		x.errorf(InvalidFrame, "this stop_reason may mean the fragments of several agents or conversations, so it ended none; send it with their agent_id and conversation_id, or the calls whole")
		return
	}
	for _, run := range ended {
		if awaited && len(run.calls) > 0 {
			x.emit(run.request())
		}
		for _, f := range run.calls {
			d.calls--
			d.bytes -= len(f.Arguments)
		}
	}
	d.runs = slices.DeleteFunc(d.runs, func(c *collection) bool { return slices.Contains(ended, c) })
}

// ended returns the collections that a stop_reason does not spare: those of the conversation that it names, if any;
// otherwise those of each conversation that has the run it names, if any; otherwise all.
func (d *Decoder) ended(w *wireStop) []*collection {
	named := Origin{AgentID: w.AgentID, ConversationID: w.ConversationID}
	open := filter(d.runs, func(c *collection) bool { return !w.spares(c.origin) })
	isNamed := func(c *collection) bool { return named != Origin{} && c.of(named) }
	isRun := func(c *collection) bool { return w.RunID != "" && c.origin.RunID == w.RunID }
	for _, isMeant := range []func(*collection) bool{isNamed, isRun} {
		if meant := filter(open, isMeant); len(meant) > 0 {
			return filter(open, func(c *collection) bool {
				return slices.ContainsFunc(meant, func(m *collection) bool { return c.of(m.origin) })
			})
		}
	}
	return open
}

func filter(list []*collection, keep func(*collection) bool) []*collection {
	return slices.DeleteFunc(slices.Clone(list), func(c *collection) bool { return !keep(c) })
}

// spares reports whether a stop_reason names another run, agent or conversation than o.
func (w *wireStop) spares(o Origin) bool {
	for _, named := range [][2]string{{w.RunID, o.RunID}, {w.AgentID, o.AgentID}, {w.ConversationID, o.ConversationID}} {
		if named[0] != named[1] && named[0] != "" && named[1] != "" {
			return true
		}
	}
	return false
}

func (c *collection) request() *Request {
	request := &Request{Dialect: LettaAPI, Origin: c.origin}
	for _, f := range c.calls {
		if f.Name == "" {
			f.refuse("its fragments named no tool; send its name with the first")
		}
		request.Calls = append(request.Calls, *f)
	}
	return request
}
