package dispatch

import (
	"context"
	"encoding/json"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

// A judged call is decided and recorded as every other, but toold does not run it: its
// caller does, where allowed. No sandbox of toold confines it, so the policy takes it for a
// call that nothing confines, and a person can neither widen nor edit it.

// invocation builds what is decided and run.
func (d *Dispatcher) invocation(ctx context.Context, c *Call) (tools.Invocation, *refusal) {
	if !c.req.JudgeOnly {
		return d.build(ctx, c.workspace, c.asked)
	}
	if _, _, known := c.workspace.opt.Registry.Lookup(c.asked.Name); !known && c.asked.Invalid == "" {
		return judged{foreign{c.asked.Name, c.asked.Arguments}}, nil
	}
	inv, refused := d.build(ctx, c.workspace, c.asked)
	return judged{inv}, refused
}

// judged is the invocation of such a call. What embeds the interface has none of the
// further abilities of an invocation.
type judged struct{ tools.Invocation }

// Preview is that of the call, marked.
func (j judged) Preview() tools.Preview {
	p := j.Invocation.Preview()
	p.Text = "outside of toold: " + p.Text
	return p
}

// OnlyReads reports true: nothing runs.
func (judged) OnlyReads() bool { return true }

// Execute runs nothing.
func (judged) Execute(context.Context, tools.IO) tools.Result {
	return tools.Result{Text: "Allowed. toold has run nothing: the caller runs it."}
}

// foreign is a call of a tool that toold does not have. Policies name it as a command,
// tool:NAME, without operands.
type foreign struct {
	name      string
	arguments json.RawMessage
}

func (f foreign) Effects() []policy.Effect {
	program := "tool:" + f.name
	return []policy.Effect{{Kind: policy.Exec, Argv: []policy.Word{{Text: program}}, Source: f.name}}
}

func (f foreign) Preview() tools.Preview {
	return tools.Preview{Text: f.name + " " + beginning(string(f.arguments))}
}

// Execute is not reached: a foreign call is always a judged one.
func (foreign) Execute(context.Context, tools.IO) tools.Result {
	return tools.Result{IsError: true, Text: "toold has no such tool; nothing ran"}
}
