package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/policy"
)

// proposal is what a policy lacks to answer questions that people approved: one
// rule about commands, paths or hosts, or one variable.
type proposal struct {
	Run     []string `json:"run,omitempty"`   // one command pattern
	Ops     []string `json:"ops,omitempty"`   // of Match: read or write
	Match   []string `json:"match,omitempty"` // one path
	Hosts   []string `json:"hosts,omitempty"`
	Ports   []int    `json:"ports,omitempty"`
	Schemes []string `json:"schemes,omitempty"`
	Env     []string `json:"env,omitempty"`

	Saves []string `json:"saves"`     // approved calls that it lets pass, with others of the proposals
	Also  []string `json:"also"`      // further calls of the journal with an effect that it allows
	IDs   []string `json:"saved_ids"` // tool_call_ids of Saves

	lacks policy.File
	words []string // of a command: literal, or "*"
}

// propose makes a proposal of what one effect lacks.
func propose(e policy.Effect, lacks policy.File) *proposal {
	p := &proposal{Env: lacks.Env, Saves: []string{}, Also: []string{}, IDs: []string{}, lacks: lacks}
	for _, r := range lacks.Commands {
		p.Run = r.Run
		for _, w := range e.Argv {
			p.words = append(p.words, w.Text)
		}
	}
	for _, r := range lacks.Paths {
		p.Ops, p.Match = []string{r.Ops[0].String()}, r.Paths
	}
	for _, r := range lacks.Net {
		p.Hosts, p.Ports, p.Schemes = r.Hosts, r.Ports, r.Schemes
	}
	return p
}

func policySuggestCommand(g *global) *cobra.Command {
	var since string
	cmd := &cobra.Command{
		Use: "suggest", Short: "Propose rules for what people have approved", Args: cobra.NoArgs,
		Long: "Looks in the journal for calls that a person approved, and proposes the narrowest rules,\nabout commands, paths, hosts and variables, with which nobody would have been asked. Each was tried: it lets the calls pass from\nwhich it comes. Shown beside it is what else of the journal it would have allowed.\nNothing is proposed for shells, interpreters and other programs that run what their\narguments say, nor for what cannot be analysed. Nothing is changed.",
		RunE: func(cmd *cobra.Command, _ []string) error { return g.suggest(cmd.Context(), since) },
	}
	cmd.Flags().StringVar(&since, "since", "30d", "how far to look back, e.g. `30d` or 12h")
	return cmd
}

func (g *global) suggest(ctx context.Context, since string) error {
	j, err := g.judge()
	if err != nil {
		return err
	}
	calls, err := g.replayable(ctx, j, since)
	if err != nil {
		return err
	}
	list, err := j.proposals(calls)
	if err != nil {
		return err
	}
	return g.print(list, proposalsText(list))
}

// proposals makes rules of the approved calls that would be asked again.
func (j *judge) proposals(calls []past) ([]*proposal, error) {
	file, err := config.ReadPolicy(j.cfg.Policy)
	if err != nil {
		return nil, &exitError{exitConfig, err}
	}
	list := []*proposal{}
	for _, c := range calls {
		if !byUser(c.Decision) || c.Decision.Action != policy.Allow.String() || c.Decision.Widened != "" {
			continue // what needs a wider sandbox, no rule can let run
		}
		for _, next := range asking(j.policy.For(c.Client, c.AgentID), c.effects) {
			list = merge(list, next)
		}
	}
	all := j.adding(file, list...)
	var proved []*proposal
	for i, p := range list {
		alone := j.adding(file, p)
		if all == nil || alone == nil {
			continue
		}
		for _, c := range calls {
			switch {
			case !c.newlyAllowed(j.policy, alone):
			case byUser(c.Decision) && c.Decision.Action == "allow" && c.decidedBy(all).Action == policy.Allow:
				p.Saves, p.IDs = append(p.Saves, c.text), append(p.IDs, c.ID)
			default:
				p.Also = append(p.Also, c.text)
			}
		}
		if len(p.Saves) > 0 {
			proved = append(proved, list[i])
		}
	}
	return proved, nil
}

// asking returns what the effects of a call lack that ask by default, or nothing
// when rules for them would not be enough, or too much.
func asking(p *policy.Policy, effects []policy.Effect) []*proposal {
	var list []*proposal
	for _, e := range effects {
		if p.Decide([]policy.Effect{e}).Action == policy.Allow {
			continue
		}
		lacks, ok := p.Propose(e)
		if !ok {
			return nil
		}
		list = append(list, propose(e, lacks))
	}
	return list
}

// merge adds a proposal to the others. A command joins one that differs in
// operands only, which become *; its program and its first word stay.
func merge(list []*proposal, next *proposal) []*proposal {
	for _, p := range list {
		general, ok := generalise(p.words, next.words)
		if same := next.words == nil && p.says(next); !ok && !same {
			continue
		}
		if ok && !slices.Equal(general, p.words) {
			p.words, p.Run = general, []string{strings.Join(general, " ")}
			p.lacks = policy.File{Commands: []policy.Rule{{Action: policy.Allow, Run: p.Run}}}
		}
		return list
	}
	return append(list, next)
}

// says reports whether two proposals are the same rule.
func (p *proposal) says(q *proposal) bool {
	return slices.Equal(p.Ops, q.Ops) && slices.Equal(p.Match, q.Match) && slices.Equal(p.Env, q.Env) &&
		slices.Equal(p.Hosts, q.Hosts) && slices.Equal(p.Ports, q.Ports) && slices.Equal(p.Schemes, q.Schemes)
}

// generalise returns the narrowest pattern that covers both commands. * stands
// for one operand and never for a flag.
func generalise(a, b []string) ([]string, bool) {
	if len(a) != len(b) || len(a) == 0 {
		return nil, false
	}
	out := slices.Clone(a)
	for i := range a {
		switch {
		case a[i] == b[i]:
		case i < 2 || strings.HasPrefix(a[i], "-") || strings.HasPrefix(b[i], "-") || strings.ContainsAny(a[i]+b[i], " \t'\"\\#;|&<>()$`"):
			return nil, false
		default:
			out[i] = "*"
		}
	}
	return out, true
}

// adding compiles the policy with the proposals in the user's file, or returns
// nil when that is no policy.
func (j *judge) adding(file policy.File, list ...*proposal) *policy.Policy {
	for i, p := range list {
		titled := func(rules []policy.Rule) []policy.Rule {
			rules = slices.Clone(rules)
			for k := range rules {
				rules[k].ID = fmt.Sprintf("suggested-%d", i+1)
			}
			return rules
		}
		file.Commands = append(slices.Clip(file.Commands), titled(p.lacks.Commands)...)
		file.Paths = append(slices.Clip(file.Paths), titled(p.lacks.Paths)...)
		file.Net = append(slices.Clip(file.Net), titled(p.lacks.Net)...)
		file.Env = append(slices.Clip(file.Env), p.lacks.Env...)
	}
	p, err := config.CompilePolicy(file, policyOptions(j.cfg))
	if err != nil {
		return nil
	}
	return p
}

// newlyAllowed tells whether some effect of a call is allowed by next and was not
// before.
func (c past) newlyAllowed(before, next *policy.Policy) bool {
	before, next = before.For(c.Client, c.AgentID), next.For(c.Client, c.AgentID)
	return slices.ContainsFunc(c.effects, func(e policy.Effect) bool {
		one := []policy.Effect{e}
		return before.Decide(one).Action != policy.Allow && next.Decide(one).Action == policy.Allow
	})
}

// proposalsText is a piece of a policy file, with what the rules come from.
func proposalsText(list []*proposal) string {
	if len(list) == 0 {
		return "# No approved call can be covered by a narrow rule.\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Proposed %s from what people approved. Put what you want into your policy:\n", time.Now().Format(time.DateOnly))
	for _, section := range []string{"commands", "paths", "net", "env"} {
		head := section + ":\n"
		if section == "env" {
			head += "  allow:\n"
		}
		for i, p := range list {
			if p.section() != section {
				continue
			}
			b.WriteString(head + p.text(i+1))
			head = ""
		}
	}
	return b.String()
}

// section is where in a policy file a proposal belongs.
func (p *proposal) section() string {
	switch {
	case len(p.Run) > 0:
		return "commands"
	case len(p.Match) > 0:
		return "paths"
	case len(p.Hosts) > 0:
		return "net"
	}
	return "env"
}

// text is a proposal as it stands in a policy file.
func (p *proposal) text(number int) string {
	var b strings.Builder
	if len(p.Env) > 0 {
		fmt.Fprintf(&b, "    - %q\n", p.Env[0])
	} else {
		fmt.Fprintf(&b, "  - id: suggested-%d\n    decision: allow\n", number)
	}
	for _, line := range []struct {
		key   string
		texts []string
	}{{"run", p.Run}, {"ops", p.Ops}, {"match", p.Match}, {"hosts", p.Hosts}, {"schemes", p.Schemes}} {
		if len(line.texts) > 0 {
			fmt.Fprintf(&b, "    %s: [%q]\n", line.key, line.texts[0])
		}
	}
	if len(p.Ports) > 0 {
		fmt.Fprintf(&b, "    ports: [%d]\n", p.Ports[0])
	}
	for _, text := range p.Saves {
		fmt.Fprintf(&b, "    # saves: %s\n", text)
	}
	for _, text := range p.Also {
		fmt.Fprintf(&b, "    # ALSO ALLOWS a part of: %s\n", text)
	}
	return b.String()
}
