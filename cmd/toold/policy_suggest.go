package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/audit"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/policy/check"
)

type proposal struct {
	Run      []string  `json:"run,omitempty"`
	Ops      []string  `json:"ops,omitempty"`
	Match    []string  `json:"match,omitempty"`
	Hosts    []string  `json:"hosts,omitempty"`
	Ports    []int     `json:"ports,omitempty"`
	Schemes  []string  `json:"schemes,omitempty"`
	Env      []string  `json:"env,omitempty"`
	Approved int       `json:"approved"`
	Last     time.Time `json:"last_approved"`
	RunsCode bool      `json:"runs_code"` // it depends on files that calls may change

	Saves []string `json:"saves"`     // approved calls that it allows, with the other proposals
	Also  []string `json:"also"`      // further calls with an effect that it allows
	IDs   []string `json:"saved_ids"` // of Saves

	section, text string
}

func proposalOf(p *check.Proposal) proposal {
	r := p.Change.Rule
	out := proposal{
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

func policySuggestCommand(g *global) *cobra.Command {
	var since string
	cmd := &cobra.Command{
		Use: "suggest", Short: "Propose rules for what people have approved", Args: cobra.NoArgs,
		Long: "Looks in the journal for calls that a person approved and that worked, and proposes the\nnarrowest rules, about commands, paths, hosts and variables, with which no one would have\nbeen asked; what was approved most comes first. Each was tried: it lets the calls pass from\nwhich it comes. Shown beside it is what else of the journal it would have allowed. Nothing\nis proposed for what failed or was refused, nor for what cannot be analysed. Nothing is\nchanged.",
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
	history, err := g.history(ctx, j, since)
	if err != nil {
		return err
	}
	list := []proposal{}
	for _, p := range j.Suggest(history) {
		list = append(list, proposalOf(p))
	}
	return g.Print(list, proposalsText(list))
}

func proposalsText(list []proposal) string {
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

func (p proposal) inFile(c policy.Change) string {
	var b strings.Builder
	if c.Section == "env.allow" {
		fmt.Fprintf(&b, "    - %q\n", c.Texts[0])
	} else {
		fmt.Fprintf(&b, "  - %s\n", c.Rule)
	}
	fmt.Fprintf(&b, "    # approved %s, last %s\n", console.Times(p.Approved), p.Last.Local().Format(time.DateTime))
	if p.RunsCode {
		b.WriteString("    # it runs what files in the workspace say, which calls may write\n")
	}
	for _, list := range []struct {
		head  string
		texts []string
	}{{"saves", p.Saves}, {"ALSO ALLOWS a part of", p.Also}} {
		for _, text := range list.texts[:min(len(list.texts), maxNamed)] {
			fmt.Fprintf(&b, "    # %s: %s\n", list.head, text)
		}
		if more := len(list.texts) - maxNamed; more > 0 {
			fmt.Fprintf(&b, "    # %s: %d more\n", list.head, more)
		}
	}
	return b.String()
}

func policyDiffCommand(g *global) *cobra.Command {
	var since string
	cmd := &cobra.Command{
		Use: "diff FILE", Short: "List the calls of the journal that another policy would decide otherwise", Args: one,
		Long: "Judges the calls of the journal by the policy that holds and by FILE, and lists those\nthat FILE decides otherwise. Each different call counts once. Nothing is run.",
		RunE: func(cmd *cobra.Command, args []string) error { return g.diffPolicy(cmd.Context(), args[0], since) },
	}
	cmd.Flags().StringVar(&since, "since", "30d", "how far to look back, e.g. `30d` or 12h")
	return cmd
}

func (g *global) diffPolicy(ctx context.Context, file, since string) error {
	old, err := g.judge()
	if err != nil {
		return err
	}
	next, err := old.with(file)
	if err != nil {
		return err
	}
	history, err := g.history(ctx, old, since)
	if err != nil {
		return err
	}
	changes := old.Compare(history, next)
	return g.Print(map[string]any{"calls": len(history.Calls), "changes": changes}, changesText(len(history.Calls), changes))
}

func (g *global) history(ctx context.Context, j *judge, since string) (*check.History, error) {
	back, err := audit.Age(since)
	if err != nil {
		return nil, err
	}
	log, err := audit.Open(ctx, j.cfg)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	h, err := dispatch.History(ctx, log, time.Now().Add(-back), 0, j.Effects)
	if err != nil {
		return nil, err
	}
	return h, nil
}

func changesText(calls int, changes []check.Difference) string {
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
