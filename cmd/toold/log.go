package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/policy"
)

// openRecord opens the journal of a configuration, and does not make one.
func openRecord(ctx context.Context, cfg config.Config) (*journal.Journal, error) {
	if err := recorded(ctx, cfg); err != nil {
		return nil, err
	}
	j, err := journal.Open(ctx, cfg.StateDir, journal.Self())
	if err != nil {
		return nil, &exitError{exitFailed, err}
	}
	return j, nil
}

// recorded returns an error unless a journal was made. That of 0.1.0-dev is imported.
func recorded(ctx context.Context, cfg config.Config) error {
	_, _, err := journal.Import(ctx, cfg.StateDir, false)
	if err == nil {
		err = journal.Made(cfg.StateDir)
	}
	switch {
	case errors.Is(err, journal.ErrNotFound):
		return &exitError{exitFailed, fmt.Errorf("there is no journal in %s: no call was made yet", cfg.StateDir)}
	case errors.Is(err, journal.ErrTampered):
		return &exitError{exitTampered, err}
	case err != nil:
		return &exitError{exitFailed, err}
	}
	return nil
}

// logRun is one `toold log`.
type logRun struct {
	*global
	since              string
	most               int
	tool, action, text string // "" = any
	workspace          string // the same; a canonical path
}

func logCommand(g *global) *cobra.Command {
	l := &logRun{global: g}
	cmd := &cobra.Command{
		Use: "log", Short: "List the calls of the journal, the latest last", Args: cobra.NoArgs,
		Long: "Lists the calls of the journal: when each was asked, what was decided, how it ended and\n" +
			"what it was. toold show ID tells all of one. No daemon is needed. With --json each call is\n" +
			"a line, as of toold show. With --workspace only calls in that one are listed.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("workspace") {
				l.workspace = l.options.Workspace
			}
			if err := l.check(); err != nil {
				return &exitError{exitUsage, err}
			}
			return l.withRecord(cmd.Context(), l.run)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&l.since, "since", "36500d", "how far to look back, e.g. `30d` or 12h")
	flags.IntVarP(&l.most, "lines", "n", 100, "at most so many `calls`, the latest")
	flags.StringVar(&l.tool, "tool", "", "only calls of a `tool`")
	flags.StringVar(&l.action, "decision", "", "only calls that were decided so: allow, ask or deny")
	flags.StringVar(&l.text, "grep", "", "only calls whose line holds a `text`")
	return cmd
}

// check rejects flags that no call could match.
func (l *logRun) check() (err error) {
	if l.workspace != "" {
		if l.workspace, err = filepath.Abs(l.workspace); err != nil {
			return err
		}
		if real, err := filepath.EvalSymlinks(l.workspace); err == nil { // else it is gone, and recorded as it was
			l.workspace = real
		}
	}
	if l.most < 1 {
		return fmt.Errorf("--lines %d: expected 1 or more", l.most)
	}
	return oneOf("--decision", l.action, policy.Allow.String(), policy.Ask.String(), policy.Deny.String())
}

// oneOf rejects a word that a flag does not know. No word is the absence of the flag.
func oneOf(flag, word string, known ...string) error {
	if word == "" || slices.Contains(known, word) {
		return nil
	}
	last := len(known) - 1
	return fmt.Errorf("%s %q: expected %s or %s", flag, word, strings.Join(known[:last], ", "), known[last])
}

// unknownTool rejects a --tool that is neither in the journal nor one that toold has.
func (l *logRun) unknownTool() error {
	registry, err := daemon.Tools(config.Config{})
	if err != nil {
		return err
	}
	if _, _, known := registry.Lookup(l.tool); known {
		return nil
	}
	var names []string
	for _, d := range registry.Definitions() {
		names = append(names, d.Name)
	}
	return &exitError{exitUsage, oneOf("--tool", l.tool, names...)}
}

// logged is a call and its text on one line.
type logged struct {
	journal.Record
	arguments []byte
	text      string
}

func (l *logRun) run(ctx context.Context, record *journal.Journal) error {
	back, err := age(l.since)
	if err != nil {
		return err
	}
	calls, err := l.collect(ctx, record, time.Now().Add(-back))
	if err != nil {
		return err
	}
	if len(calls) == 0 && l.tool != "" {
		if err := l.unknownTool(); err != nil {
			return err
		}
	}
	slices.Reverse(calls)
	if l.json {
		return l.lines(calls)
	}
	several := slices.ContainsFunc(calls, func(c logged) bool { return c.Workspace != calls[0].Workspace })
	rows := make([][]string, len(calls))
	for n, c := range calls {
		rows[n] = []string{c.ReceivedAt.Local().Format(time.DateTime), orDefault(c.Decision.Action, "-"), ending(c.Record)}
		if several {
			rows[n] = append(rows[n], oneLine(orDefault(c.Workspace, "-")))
		}
		rows[n] = append(rows[n], oneLine(c.ID), c.text)
	}
	return l.columns(rows)
}

// collect reads the journal backwards.
func (l *logRun) collect(ctx context.Context, record *journal.Journal, since time.Time) (calls []logged, err error) {
	for before := journal.Key(0); ; {
		page, err := record.Latest(ctx, before, 100)
		if err != nil || len(page) == 0 {
			return calls, err
		}
		for _, rec := range page {
			if len(calls) == l.most || rec.ReceivedAt.Before(since) {
				return calls, nil
			}
			before = rec.Key
			arguments, err := record.Arguments(ctx, rec.Key)
			if err != nil {
				return nil, err
			}
			if c := (logged{rec, arguments, dispatch.CallText(rec.Tool, arguments)}); l.wants(c) {
				calls = append(calls, c)
			}
		}
	}
}

func (l *logRun) wants(c logged) bool {
	switch {
	case l.tool != "" && l.tool != c.Tool && l.tool != c.Canonical,
		l.action != "" && l.action != c.Decision.Action,
		l.workspace != "" && l.workspace != c.Workspace:
		return false
	}
	return strings.Contains(c.text, l.text)
}

func (l *logRun) lines(calls []logged) error {
	for _, c := range calls {
		s, err := shown(c.Record, c.arguments)
		if err == nil {
			err = l.emit(s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ending says how a call ended, or how far it is.
func ending(rec journal.Record) string {
	switch {
	case rec.ErrorType != "":
		return rec.ErrorType
	case rec.ExitCode != nil:
		return fmt.Sprintf("exit %d", *rec.ExitCode)
	}
	return orDefault(rec.Status, string(rec.State))
}
