package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/policy"
)

// past is a call of the journal with what it does.
type past struct {
	journal.Record
	effects []policy.Effect
	text    string // the call, for people
}

// decidedBy judges the call as its client's.
func (c past) decidedBy(p *policy.Policy) policy.Decision {
	return p.For(c.Client, c.AgentID).Decide(c.effects)
}

// history returns the calls since a time that can be judged, each different call
// once, the latest first decision by a person kept.
func (j *judge) history(ctx context.Context, log *journal.Journal, since time.Time) ([]past, error) {
	var calls []past
	seen := make(map[string]int)
	for after := journal.Key(0); ; {
		page, err := log.Calls(ctx, after, 500)
		if err != nil {
			return nil, &exitError{exitFailed, err}
		}
		if len(page) == 0 {
			return calls, nil
		}
		for _, rec := range page {
			after = rec.Key
			if rec.ReceivedAt.Before(since) {
				continue
			}
			i, known := seen[rec.ArgsHash]
			if known && byUser(calls[i].Decision) {
				continue
			}
			if known {
				calls[i].Record = rec
				continue
			}
			arguments, err := log.Arguments(ctx, rec.Key)
			if err != nil {
				return nil, &exitError{exitFailed, err}
			}
			if effects, err := j.effects(rec.Tool, arguments); err == nil {
				seen[rec.ArgsHash] = len(calls)
				calls = append(calls, past{rec, effects, callText(rec.Canonical, arguments)})
			}
		}
	}
}

// callText is a call on one line.
func callText(tool string, arguments json.RawMessage) string {
	var a struct {
		Command string `json:"command"`
		Path    string `json:"file_path"`
	}
	if json.Unmarshal(arguments, &a) != nil || a.Command == "" && a.Path == "" {
		return oneLine(tool)
	}
	return oneLine(strings.TrimSpace(tool + " " + a.Command + a.Path))
}

// age reads "30d" and everything that time.ParseDuration reads.
func age(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		if err == nil && n >= 0 && n < 100_000 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, &exitError{exitUsage, fmt.Errorf("cannot read --since %q: write days or hours, e.g. 30d or 12h", text)}
	}
	return d, nil
}

// change is a call that another policy decides otherwise.
type change struct {
	Call   string        `json:"tool_call_id"`
	Text   string        `json:"call"`
	Before policy.Action `json:"before"`
	After  policy.Action `json:"after"`
	Rule   string        `json:"rule"`
	Source string        `json:"source"`
}

func policyDiffCommand(g *global) *cobra.Command {
	var since string
	cmd := &cobra.Command{
		Use: "diff FILE", Short: "Tell which calls of the journal another policy would decide otherwise", Args: one,
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
	calls, err := g.replayable(ctx, old, since)
	if err != nil {
		return err
	}
	changes := []change{}
	for _, c := range calls {
		before, after := c.decidedBy(old.policy), c.decidedBy(next.policy)
		if before.Action != after.Action {
			changes = append(changes, change{c.ID, c.text, before.Action, after.Action, after.Rule, after.Source})
		}
	}
	return g.print(map[string]any{"calls": len(calls), "changes": changes}, changesText(len(calls), changes))
}

// replayable are the calls of the journal, as far back as a flag says.
func (g *global) replayable(ctx context.Context, j *judge, since string) ([]past, error) {
	back, err := age(since)
	if err != nil {
		return nil, err
	}
	log, err := openRecord(ctx, j.cfg)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	return j.history(ctx, log, time.Now().Add(-back))
}

// changesText says first how many calls change and how, then which.
func changesText(calls int, changes []change) string {
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
		fmt.Fprintf(&b, "  %s→%s  %s  [%s, %s]\n", c.Before, c.After, c.Text, oneLine(c.Rule), oneLine(c.Source))
	}
	return b.String()
}
