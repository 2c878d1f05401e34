package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/internal/describe"
	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
)

// Log selects and prints calls. Since and Most are required; other empty fields match everything.
type Log struct {
	console.Console
	Since        string
	Most         int
	Tool, Agent  string
	Action, Text string
	Workspace    string
	Follow       bool
	Store        string // connection string of a team store; "" = the local journal
	Daemon       string // OWNER or OWNER/ID in the store
}

// wasAsked is the value of --decision for calls that awaited approval.
const wasAsked = "asked"

// Check validates the fields, and makes Workspace canonical.
func (l *Log) Check() (err error) {
	if l.Workspace != "" {
		if l.Workspace, err = filepath.Abs(l.Workspace); err != nil {
			return err
		}
		if real, err := filepath.EvalSymlinks(l.Workspace); err == nil { // a removed directory is recorded under the given path
			l.Workspace = real
		}
	}
	switch {
	case l.Daemon != "" && l.Store == "":
		return ErrNoStore
	case l.Follow && l.Store != "":
		return errors.New("--follow is for the journal here: leave out --postgres")
	}
	if l.Most < 1 {
		return fmt.Errorf("--lines %d: expected 1 or more", l.Most)
	}
	return console.OneOf("--decision", l.Action, policy.Allow.String(), policy.Ask.String(), policy.Deny.String(), wasAsked)
}

// ownName replaces an alias in Tool by the tool's name. unknown is the error to return for an unknown tool if no call
// matches.
func (l *Log) ownName() (unknown, err error) {
	registry, err := daemon.Tools(config.Config{})
	if err != nil || l.Tool == "" {
		return nil, err
	}
	if _, name, known := registry.Lookup(l.Tool); known {
		l.Tool = name
		return nil, nil
	}
	var names []string
	for _, d := range registry.Definitions() {
		names = append(names, d.Name)
	}
	return console.Usage(console.OneOf("--tool", l.Tool, names...)), nil
}

type logged struct {
	journal.Record
	text   string
	daemon string // in a team store; "" = the local journal
}

// Run prints the matching calls, oldest first, then follows the journal if Follow is set. record is nil if Store is
// set.
func (l *Log) Run(ctx context.Context, record *journal.Journal) error {
	back, err := Age(l.Since)
	if err != nil {
		return err
	}
	unknown, err := l.ownName()
	if err != nil {
		return err
	}
	f := follower{Log: l, record: record}
	if l.Follow {
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
	if err = cmp.Or(failed, err); err != nil || !l.Follow {
		return err
	}
	return f.follow(ctx, calls)
}

func (l *Log) print(calls []logged) error {
	if l.JSON {
		return l.lines(calls)
	}
	several := slices.ContainsFunc(calls, func(c logged) bool { return c.Workspace != calls[0].Workspace })
	rows := make([][]string, len(calls))
	for n, c := range calls {
		if c.daemon != "" {
			short := strings.LastIndex(c.daemon, "/") + 1 + 8 // the first 8 digits of the id
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

func (l *Log) query() journal.CallQuery {
	q := journal.CallQuery{Agent: l.Agent, Workspace: l.Workspace, Tool: l.Tool, Action: l.Action, Text: l.Text, Limit: l.Most}
	if l.Action == wasAsked {
		q.Action, q.Asked = "", true
	}
	return q
}

// collect returns the latest matching calls, newest first. With an error, some may be missing.
func (l *Log) collect(ctx context.Context, record *journal.Journal, since time.Time) (calls []logged, err error) {
	q := l.query()
	q.Since = since
	if l.Store != "" {
		return l.collectStore(ctx, q)
	}
	for {
		page, failed := record.Select(ctx, q)
		err = cmp.Or(err, failed)
		for _, rec := range page {
			if q.Before = rec.Key; l.wants(rec) {
				calls = append(calls, newLogged(rec))
			}
			if len(calls) == l.Most {
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

func (l *Log) wants(rec journal.Record) bool {
	if l.Text == "" || strings.Contains(newLogged(rec).text, l.Text) || rec.Mentions(l.Text) {
		return true
	}
	ret, err := message.Record(rec.Result).Return()
	return err == nil && strings.Contains(ret.Result, l.Text)
}

func (l *Log) lines(calls []logged) error {
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
	return cmp.Or(describe.Status(rec.Tool, rec.Status), string(rec.State))
}

// Age parses a number of days such as 30d, a time.Duration, or a past date such as 2026-01-31.
func Age(text string) (time.Duration, error) {
	if day, err := time.ParseInLocation(time.DateOnly, text, time.Local); err == nil && time.Since(day) >= 0 {
		return time.Since(day), nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		if err == nil && n >= 0 && n < 100_000 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, console.Usage(fmt.Errorf("cannot read --since %q: write days, hours or a past date, e.g. 30d, 12h or 2026-01-31", text))
	}
	return d, nil
}

const followEvery = 200 * time.Millisecond

type follower struct {
	*Log
	record *journal.Journal
	last   journal.Key // the latest known call
	open   map[journal.Key]bool
}

func (f *follower) begin(ctx context.Context) error {
	latest, err := f.record.Latest(ctx, 0, 1)
	if err != nil {
		return err
	}
	if len(latest) > 0 {
		f.last = latest[0].Key
	}
	f.open, err = f.record.OpenCalls()
	return err
}

// follow prints each call that ends before ctx does, except those that printed shows as ended.
func (f *follower) follow(ctx context.Context, printed []logged) error {
	done := map[journal.Key]bool{}
	for _, c := range printed {
		done[c.Key] = !c.ReturnedAt.IsZero()
	}
	tick := time.Tick(followEvery)
	for {
		ended, err := f.ended(ctx)
		for _, k := range ended {
			if err == nil && !done[k] {
				err = f.printOne(ctx, k)
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick:
		}
	}
}

// ended returns the calls that ended since the previous call of ended. It returns none while another process locks
// the journal.
func (f *follower) ended(ctx context.Context) ([]journal.Key, error) {
	list, err := f.found(ctx)
	if errors.Is(err, journal.ErrBusy) {
		return nil, nil
	}
	return list, err
}

func (f *follower) found(ctx context.Context) (list []journal.Key, err error) {
	for {
		page, err := f.record.Calls(ctx, f.last, 1000)
		if err != nil {
			return nil, err
		}
		for _, rec := range page {
			f.last, f.open[rec.Key] = rec.Key, true
		}
		if len(page) == 0 {
			break
		}
	}
	now, err := f.record.OpenCalls()
	if err != nil {
		return nil, err
	}
	for _, k := range slices.Sorted(maps.Keys(f.open)) {
		if !now[k] {
			delete(f.open, k)
			list = append(list, k)
		}
	}
	return list, nil
}

func (f *follower) printOne(ctx context.Context, k journal.Key) error {
	q := f.query()
	q.After, q.Before = k-1, k+1
	calls, err := f.record.Select(ctx, q)
	for errors.Is(err, journal.ErrBusy) && ctx.Err() == nil {
		calls, err = f.record.Select(ctx, q)
	}
	if err != nil || len(calls) == 0 || !f.wants(calls[0]) {
		return err
	}
	return f.print([]logged{newLogged(calls[0])})
}
