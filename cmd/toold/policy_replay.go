package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/policy/check"
)

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
	return g.print(map[string]any{"calls": len(history.Calls), "changes": changes}, changesText(len(history.Calls), changes))
}

func (g *global) history(ctx context.Context, j *judge, since string) (*check.History, error) {
	back, err := age(since)
	if err != nil {
		return nil, err
	}
	log, err := openRecord(ctx, j.cfg)
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
		fmt.Fprintf(&b, "  %s→%s  %s  [%s, %s]\n", c.Before, c.After, c.Text, oneLine(c.Rule), oneLine(c.Source))
	}
	return b.String()
}
