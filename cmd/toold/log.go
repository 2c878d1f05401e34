package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
)

// openRecord opens an existing journal.
func openRecord(ctx context.Context, cfg config.Config) (*journal.Journal, error) {
	if err := recorded(ctx, cfg); err != nil {
		return nil, err
	}
	return journal.Open(ctx, cfg.StateDir, journal.Self())
}

// recorded imports the journal of 0.1.0-dev, and fails if there is none.
func recorded(ctx context.Context, cfg config.Config) error {
	_, _, err := journal.Import(ctx, cfg.StateDir, false)
	if err == nil {
		err = journal.Made(cfg.StateDir)
	}
	if errors.Is(err, journal.ErrNotFound) {
		return fmt.Errorf("there is no journal in %s: no call was made yet", cfg.StateDir)
	}
	return tampered(err)
}

type logRun struct {
	*global
	since        string
	most         int
	tool, agent  string
	action, text string
	workspace    string // canonical
	follow       bool
	store        string // of a team store; "" = the journal here
	daemon       string
}

// wasAsked is the --decision of calls that awaited a person.
const wasAsked = "asked"

func logCommand(g *global) *cobra.Command {
	l := &logRun{global: g}
	cmd := &cobra.Command{
		Use: "log", Short: "List the calls of the journal, the latest last", Args: cobra.NoArgs,
		Long: "Lists the calls of the journal: when each was asked, what was decided, how it ended and\n" +
			"what it was. toold show ID prints all of one. No daemon is needed. With --json each call is\n" +
			"a line, as of toold show. With --workspace only calls in that one are listed. With --follow\n" +
			"it goes on, and lists each further call when it has ended. With --postgres it lists the\n" +
			"calls of all daemons that write to a team store, or of those that --daemon names.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("workspace") {
				l.workspace = l.options.Workspace
			}
			if err := l.check(); err != nil {
				return console.Usage(err)
			}
			if l.store != "" {
				return l.run(cmd.Context(), nil)
			}
			return l.withRecord(cmd.Context(), l.run)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&l.since, "since", "36500d", "how far to look back, e.g. `30d` or 12h")
	flags.IntVarP(&l.most, "lines", "n", 100, "at most so many `calls`, the latest")
	flags.StringVar(&l.tool, "tool", "", "only calls of a `tool`")
	flags.StringVar(&l.agent, "agent", "", "only calls of an agent, by its agent_`id`")
	flags.StringVar(&l.action, "decision", "", "only calls that were decided so: allow, ask (waits), deny; or asked: a person was to decide")
	flags.StringVar(&l.text, "grep", "", "only calls whose line, arguments or result contain a `text`")
	flags.BoolVarP(&l.follow, "follow", "f", false, "go on with calls as they end")
	flags.StringVar(&l.store, "postgres", "", "`URL` of a team store, which is read instead of the journal here")
	flags.StringVar(&l.daemon, "daemon", "", "only calls of a daemon in the store: `OWNER` or OWNER/ID")
	return cmd
}

func (l *logRun) check() (err error) {
	if l.workspace != "" {
		if l.workspace, err = filepath.Abs(l.workspace); err != nil {
			return err
		}
		if real, err := filepath.EvalSymlinks(l.workspace); err == nil { // else it is gone
			l.workspace = real
		}
	}
	switch {
	case l.daemon != "" && l.store == "":
		return errNoStore
	case l.follow && l.store != "":
		return errors.New("--follow is for the journal here: leave out --postgres")
	}
	if l.most < 1 {
		return fmt.Errorf("--lines %d: expected 1 or more", l.most)
	}
	return console.OneOf("--decision", l.action, policy.Allow.String(), policy.Ask.String(), policy.Deny.String(), wasAsked)
}

// ownName resolves an alias in --tool. unknown is the error for another tool.
func (l *logRun) ownName() (unknown, err error) {
	registry, err := daemon.Tools(config.Config{})
	if err != nil || l.tool == "" {
		return nil, err
	}
	if _, name, known := registry.Lookup(l.tool); known {
		l.tool = name
		return nil, nil
	}
	var names []string
	for _, d := range registry.Definitions() {
		names = append(names, d.Name)
	}
	return console.Usage(console.OneOf("--tool", l.tool, names...)), nil
}

type logged struct {
	journal.Record
	text   string
	daemon string
}

func (l *logRun) run(ctx context.Context, record *journal.Journal) error {
	back, err := age(l.since)
	if err != nil {
		return err
	}
	unknown, err := l.ownName()
	if err != nil {
		return err
	}
	f := follower{logRun: l, record: record}
	if l.follow {
		if err := f.begin(ctx); err != nil {
			return err
		}
	}
	calls, failed := l.collect(ctx, record, time.Now().Add(-back))
	if len(calls) == 0 && failed == nil && unknown != nil {
		return unknown
	}
	slices.Reverse(calls)
	err = l.print(calls)
	if err = cmp.Or(failed, err); err != nil || !l.follow {
		return err
	}
	return f.follow(ctx, calls)
}

func (l *logRun) print(calls []logged) error {
	if l.JSON {
		return l.lines(calls)
	}
	several := slices.ContainsFunc(calls, func(c logged) bool { return c.Workspace != calls[0].Workspace })
	rows := make([][]string, len(calls))
	for n, c := range calls {
		if c.daemon != "" {
			short := strings.LastIndex(c.daemon, "/") + 1 + 8 // of its id
			rows[n] = []string{display.Short(c.daemon[:min(len(c.daemon), short)])}
		}
		rows[n] = append(rows[n], c.ReceivedAt.Local().Format(time.DateTime), cmp.Or(c.Decision.Action, "-"), ending(c.Record))
		if several {
			rows[n] = append(rows[n], display.Short(cmp.Or(c.Workspace, "-")))
		}
		rows[n] = append(rows[n], display.Short(c.ID), display.Short(c.text))
	}
	return l.Columns(rows)
}

func (l *logRun) query() journal.CallQuery {
	q := journal.CallQuery{Agent: l.agent, Workspace: l.workspace, Tool: l.tool, Action: l.action, Text: l.text, Limit: l.most}
	if l.action == wasAsked {
		q.Action, q.Asked = "", true
	}
	return q
}

// collect returns the latest calls, also with an error.
func (l *logRun) collect(ctx context.Context, record *journal.Journal, since time.Time) (calls []logged, err error) {
	q := l.query()
	q.Since = since
	if l.store != "" {
		return l.collectStore(ctx, q)
	}
	for {
		page, failed := record.Select(ctx, q)
		err = cmp.Or(err, failed)
		for _, rec := range page {
			if q.Before = rec.Key; l.wants(rec) {
				calls = append(calls, newLogged(rec))
			}
			if len(calls) == l.most {
				return calls, err
			}
		}
		if len(page) == 0 {
			return calls, err
		}
	}
}

func newLogged(rec journal.Record) logged {
	return logged{Record: rec, text: dispatch.CallText(rec.Tool, rec.Arguments)}
}

func (l *logRun) wants(rec journal.Record) bool {
	if l.text == "" || strings.Contains(newLogged(rec).text, l.text) || strings.Contains(string(rec.Arguments), l.text) {
		return true
	}
	ret, err := message.Record(rec.Result).Return()
	return err == nil && strings.Contains(ret.Result, l.text)
}

func (l *logRun) lines(calls []logged) error {
	for _, c := range calls {
		s, err := shown(c.Record, c.Arguments)
		if s.Daemon = c.daemon; err == nil {
			err = l.Emit(s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func ending(rec journal.Record) string {
	switch {
	case rec.ErrorType != "":
		return rec.ErrorType
	case rec.ExitCode != nil:
		return fmt.Sprintf("exit %d", *rec.ExitCode)
	}
	return cmp.Or(rec.Status, string(rec.State))
}
