package judge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/internal/audit"
	"github.com/toold/toold/internal/describe"
	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/policy/check"
)

// Explanation explains how a call is decided. Call and Recorded are set for a call from the journal.
type Explanation struct {
	Call     string            `json:"tool_call_id,omitempty"`
	Recorded *message.Decision `json:"recorded,omitempty"`
	check.Explanation
}

// ExplainRecorded explains a call of the journal.
func (j *Judge) ExplainRecorded(ctx context.Context, id string) (e Explanation, err error) {
	log, err := audit.Open(ctx, j.cfg)
	if err != nil {
		return e, err
	}
	defer log.Close()
	rec, err := log.FindAny(ctx, id)
	if errors.Is(err, journal.ErrNotFound) {
		return e, fmt.Errorf("the journal has no call %q; for a command: toold policy explain -- %s", id, strings.TrimPrefix(display.Operand(id), "-- "))
	}
	if err != nil {
		return e, err
	}
	arguments, err := log.Arguments(rec.Key)
	if err != nil {
		return e, err
	}
	j.Client, j.Agent = rec.Client, rec.AgentID
	e.Call = rec.ID
	if e.Explanation, err = j.Explain(rec.Tool, arguments); err == nil { // the arguments have the form of the requested name
		e.Recorded, err = audit.Decided(rec)
	}
	return e, err
}

// String returns the explanation as text.
func (e Explanation) String() string {
	var b strings.Builder
	if e.Recorded != nil {
		fmt.Fprintf(&b, "then   %s\n", display.Short(describe.Decision(*e.Recorded)))
	}
	fmt.Fprintf(&b, "%-5s  %s (%s)\n       %s\n", e.Action, display.Short(e.Rule), display.Short(e.Source), display.Short(e.Reason))
	for _, one := range e.Effects {
		fmt.Fprintf(&b, "  %-5s  %s  [%s, %s]\n", one.Action, display.Short(one.Text), display.Short(one.Rule), display.Short(one.At))
	}
	if e.Barred != "" {
		fmt.Fprintf(&b, "it cannot be allowed: %s\n", display.Short(e.Barred))
		return b.String()
	}
	if len(e.Needs) > 0 {
		b.WriteString("for it to be allowed, the policy needs\n")
	}
	for _, need := range e.Needs {
		fmt.Fprintf(&b, "  - %s\n", display.Short(need))
	}
	if e.Proved {
		b.WriteString("then it is allowed (tried)\n")
	}
	return b.String()
}

// Proposal is a rule that toold policy suggest proposes.
type Proposal struct {
	Run      []string  `json:"run,omitempty"`
	Ops      []string  `json:"ops,omitempty"`
	Match    []string  `json:"match,omitempty"`
	Hosts    []string  `json:"hosts,omitempty"`
	Ports    []int     `json:"ports,omitempty"`
	Schemes  []string  `json:"schemes,omitempty"`
	Env      []string  `json:"env,omitempty"`
	Approved int       `json:"approved"` // how often a person approved the calls
	Last     time.Time `json:"last_approved"`
	RunsCode bool      `json:"runs_code"` // the command runs the contents of files that calls may change

	Saves []string `json:"saves"`     // approved calls that all proposals together allow, this one included
	Also  []string `json:"also"`      // more calls of the journal of which it allows an effect
	IDs   []string `json:"saved_ids"` // tool_call_ids of Saves

	section, text string
}

func proposalOf(p *check.Proposal) Proposal {
	r := p.Change.Rule
	out := Proposal{
		Run: r.Run, Match: r.Paths, Hosts: r.Hosts, Ports: r.Ports, Schemes: r.Schemes, Env: p.Change.Texts,
		Approved: p.Approved, Last: p.Last, RunsCode: p.RunsCode, Saves: []string{}, Also: []string{}, IDs: []string{},
	}
	for _, op := range r.Ops {
		out.Ops = append(out.Ops, op.String())
	}
	for _, c := range p.Saves {
		out.Saves, out.IDs = append(out.Saves, c.Text), append(out.IDs, c.ID)
	}
	for _, c := range p.Also {
		out.Also = append(out.Also, c.Text)
	}
	out.section, out.text = strings.TrimSuffix(p.Change.Section, ".allow"), out.inFile(p.Change)
	return out
}

// ProposalsText returns the proposals as a part of a policy file.
func ProposalsText(list []Proposal) string {
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
		for _, p := range list {
			if p.section == section {
				b.WriteString(head + p.text)
				head = ""
			}
		}
	}
	return b.String()
}

const maxNamed = 5

func (p Proposal) inFile(c policy.Change) string {
	var b strings.Builder
	if c.Section == "env.allow" {
		fmt.Fprintf(&b, "    - %q\n", c.Texts[0])
	} else {
		fmt.Fprintf(&b, "  - %s\n", c.Rule)
	}
	fmt.Fprintf(&b, "    # approved %s, last %s\n", describe.Times(p.Approved), p.Last.Local().Format(time.DateTime))
	if p.RunsCode {
		b.WriteString("    # it runs what files in the workspace say, which calls may write\n")
	}
	for _, list := range []struct {
		head  string
		texts []string
	}{{"would have been allowed unasked", p.Saves}, {"also allows a part of", p.Also}} {
		for _, text := range list.texts[:min(len(list.texts), maxNamed)] {
			fmt.Fprintf(&b, "    # %s: %s\n", list.head, text)
		}
		if more := len(list.texts) - maxNamed; more > 0 {
			fmt.Fprintf(&b, "    # %s: %d more\n", list.head, more)
		}
	}
	return b.String()
}

// History returns the calls of the journal that are not older than since, which audit.Age parses.
func (j *Judge) History(ctx context.Context, since string) (*check.History, error) {
	back, err := audit.Age(since)
	if err != nil {
		return nil, err
	}
	log, err := audit.Open(ctx, j.cfg)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	return dispatch.History(ctx, log, time.Now().Add(-back), 0, j.Effects)
}

// ChangesText lists the decisions that another policy changes.
func ChangesText(calls int, changes []check.Difference) string {
	var b strings.Builder
	count := make(map[string]int)
	var kinds []string
	for _, c := range changes {
		kind := c.Before.String() + "→" + c.After.String()
		if count[kind]++; count[kind] == 1 {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%d %s", count[kind], kind)
	}
	if len(changes) == 0 {
		kinds = []string{"no decision changes"}
	}
	fmt.Fprintf(&b, "%d calls: %s\n", calls, strings.Join(kinds, ", "))
	for _, c := range changes {
		fmt.Fprintf(&b, "  %s→%s  %s  [%s, %s]\n", c.Before, c.After, c.Text, display.Short(c.Rule), display.Short(c.Source))
	}
	return b.String()
}

// Proposals returns rules for what people approved in a history.
func (j *Judge) Proposals(history *check.History) []Proposal {
	list := []Proposal{}
	for _, p := range j.Suggest(history) {
		list = append(list, proposalOf(p))
	}
	return list
}
