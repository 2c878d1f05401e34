package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/programs"
)

// Proposal is one rule or variable that makes approvals of recorded calls unnecessary.
type Proposal struct {
	Change policy.Change

	Approved int       // number of approvals by a person
	Last     time.Time // time of the latest one
	Saves    []Past    // approved calls that need no approval with all proposals
	Also     []Past    // other calls with an effect that it allows
	RunsCode bool      // the command runs files that calls may change

	words []string // of a command: literal words and "*"
}

// Suggest returns the narrowest rules that make approvals of recorded calls unnecessary, most approvals first. It
// ignores failed and refused calls. The policy with the rules was verified to allow the calls.
func (j *Judge) Suggest(h *History) []*Proposal {
	var list []*Proposal
	for _, c := range h.Calls {
		if c.Approved == 0 || c.Refused {
			continue
		}
		of := *j
		of.Client, of.Agent = c.Client, c.Agent
		for _, next := range of.lacking(c) {
			list = merge(list, next)
		}
	}
	changes := make([]policy.Change, len(list))
	for i, p := range list {
		p.Change.Rule.ID = fmt.Sprintf("suggested-%d", i+1)
		changes[i] = p.Change
	}
	all, err := j.With(changes...)
	if err != nil {
		return nil
	}
	var proved []*Proposal
	for _, p := range list {
		if j.prove(p, h, all) {
			proved = append(proved, p)
		}
	}
	slices.SortStableFunc(proved, func(a, b *Proposal) int {
		return cmp.Or(cmp.Compare(b.Approved, a.Approved), b.Last.Compare(a.Last))
	})
	return proved
}

// lacking returns rules for effects that ask by default, or nil if they would not suffice or would allow more.
func (j *Judge) lacking(c Past) (list []*Proposal) {
	for _, o := range j.rules(j.Policy).Obstacles(c.Effects) {
		if broad(o) != nil || o.Change.Section == "except" || o.Action != policy.Ask {
			return nil
		}
		p := &Proposal{Change: o.Change, Approved: c.Approved, Last: c.Last}
		if o.Change.Section == "commands" {
			for _, w := range o.Effect.Argv {
				p.words = append(p.words, w.Text)
			}
			p.RunsCode = programs.Find(p.words[0]).RunsAnything()
		}
		list = append(list, p)
	}
	return list
}

// merge combines commands that differ only in operands after the first, which become *.
func merge(list []*Proposal, next *Proposal) []*Proposal {
	for _, p := range list {
		general, ok := generalise(p, next)
		if same := next.words == nil && sameChange(p.Change, next.Change); !ok && !same {
			continue
		}
		if ok && !slices.Equal(general, p.words) {
			p.words, p.Change.Rule.Run = general, []string{strings.Join(general, " ")}
		}
		p.Approved += next.Approved
		if next.Last.After(p.Last) {
			p.Last = next.Last
		}
		return list
	}
	return append(list, next)
}

// generalise replaces different operands by *, but neither flags nor operands that a program runs.
func generalise(p, q *Proposal) ([]string, bool) {
	a, b := p.words, q.words
	if len(a) != len(b) || len(a) == 0 {
		return nil, false
	}
	out := slices.Clone(a)
	for i := range a {
		switch {
		case a[i] == b[i]:
		case i < 2, p.RunsCode, strings.HasPrefix(a[i], "-"), strings.HasPrefix(b[i], "-"), strings.ContainsAny(a[i]+b[i], " \t'\"\\#;|&<>()$`"):
			return nil, false
		default:
			out[i] = "*"
		}
	}
	return out, true
}

// prove reports whether a proposal makes an approval unnecessary. all has every proposal.
func (j *Judge) prove(p *Proposal, h *History, all *Judge) bool {
	alone, err := j.With(p.Change)
	if err != nil {
		return false
	}
	for _, c := range h.Calls {
		switch {
		case !c.newlyAllowed(j.Policy, alone.Policy):
		case c.Approved > 0 && !c.Refused && c.decidedBy(all.Policy).Action == policy.Allow:
			p.Saves = append(p.Saves, c)
		default:
			p.Also = append(p.Also, c)
		}
	}
	return len(p.Saves) > 0
}

func (c Past) newlyAllowed(before, next *policy.Policy) bool {
	before, next = before.For(c.Client, c.Agent), next.For(c.Client, c.Agent)
	return slices.ContainsFunc(c.Effects, func(e policy.Effect) bool {
		one := []policy.Effect{e}
		return before.Decide(one).Action != policy.Allow && next.Decide(one).Action == policy.Allow
	})
}
