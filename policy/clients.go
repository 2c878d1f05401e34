package policy

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/toold/toold/shell/programs"
)

// A Client is a policy file for the calls of some clients. It can only tighten the policy.
type Client struct {
	// Name and Agent select clients; * matches any text, and "" everything. Name is a token's name, or "agent" for
	// every token. "agent NAME" is equivalent to "NAME". Agent is the id that the client sends.
	Name, Agent string
	File        File
}

type guest struct {
	Client
	rules *Policy
}

func (g *guest) holds(client, agent string) bool {
	name, _ := strings.CutPrefix(g.Name, "agent ")
	named := g.Name == "" || g.Name == "agent" || programs.Matches(name, client)
	return named && (g.Agent == "" || programs.Matches(g.Agent, agent))
}

// bare returns a policy with the options, defaults and ids of p, but without rules.
func (p *Policy) bare() *Policy {
	return &Policy{
		options: p.options, defaults: p.defaults, origins: make(map[string]string), sets: []*ruleSet{newRuleSet()}, ids: p.ids,
		foldAllowing: p.foldAllowing, foldBlocking: p.foldBlocking,
	}
}

func (c *compiler) clients(list []Client) {
	for _, cl := range list {
		p, rules := c.policy, c.policy.bare()
		rules.foldBlocking = rules.foldBlocking || cl.File.FoldCase
		own := compiler{policy: rules, set: rules.sets[0]}
		own.tighten(cl.File)
		c.errs = append(c.errs, own.errs...)
		p.warnings = append(p.warnings, rules.warnings...)
		p.guests = append(p.guests, guest{cl, rules})
	}
}

// For returns the policy for a client's calls, with the files for that client. agent is "" if the client sent none.
func (p *Policy) For(client, agent string) *Policy {
	next := p
	for _, g := range p.guests {
		if !g.holds(client, agent) {
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

// Root returns the policy from which For and Within derived p, or p.
func (p *Policy) Root() *Policy { return cmp.Or(p.root, p) }

// ForAnyone returns the root of p with the rules for every client. It blocks what is blocked for any of them.
func (p *Policy) ForAnyone() *Policy {
	all := *p.Root()
	all.sets = slices.Clip(all.sets)
	for _, g := range all.guests {
		all.sets = append(all.sets, g.rules.sets...)
	}
	return &all
}
