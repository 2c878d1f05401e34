package policy

import (
	"maps"
	"slices"

	"github.com/toold/toold/shell/programs"
)

// A Client is a file that holds for the calls of some clients only, beside all
// others. It can only tighten.
type Client struct {
	// Name and Agent are the caller that it is for, * being any text, "" any. The name is
	// that of the client's token; the agent's id is what the client says.
	Name, Agent string
	File        File
}

// guest is a compiled Client.
type guest struct {
	Client
	rules *Policy
}

// clients adds the files that a file names for clients.
func (c *compiler) clients(list []Client) {
	for _, cl := range list {
		p := c.policy
		rules := &Policy{
			options: p.options, defaults: p.defaults, sets: []*ruleSet{newRuleSet()}, ids: p.ids,
			foldAllowing: p.foldAllowing, foldBlocking: p.foldBlocking || cl.File.FoldCase,
		}
		own := compiler{policy: rules, set: rules.sets[0]}
		own.tighten(cl.File)
		own.set.sort()
		c.errs = append(c.errs, own.errs...)
		p.warnings = append(p.warnings, rules.warnings...)
		p.guests = append(p.guests, guest{cl, rules})
	}
}

// For returns the policy for the calls of a client: it is stricter where a file
// holds for that client. agent is "" when the client names none. It costs little,
// and nothing where no file does.
func (p *Policy) For(client, agent string) *Policy {
	next := p
	for _, g := range p.guests {
		if g.Name != "" && !programs.Matches(g.Name, client) || g.Agent != "" && !programs.Matches(g.Agent, agent) {
			continue
		}
		if next == p {
			own := *p
			own.root = p.Root()
			own.origins, own.files, own.sets = maps.Clone(p.origins), slices.Clip(p.files), slices.Clip(p.sets)
			next = &own
		}
		next.files = append(next.files, g.File)
		next.conditional = next.conditional || g.rules.conditional
		next.sets = append(next.sets, g.rules.sets...)
	}
	if next != p {
		next.settle()
	}
	return next
}
