// Package audit lists, shows, verifies and exports the journal of calls.
package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/describe"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
)

// Open opens the journal of a configuration. It creates none.
func Open(ctx context.Context, cfg config.Config) (*journal.Journal, error) {
	if err := Recorded(ctx, cfg); err != nil {
		return nil, err
	}
	return journal.Open(ctx, cfg.StateDir, journal.Self())
}

// Recorded imports the journal of 0.1.0-dev, and returns an error if there is no journal.
func Recorded(ctx context.Context, cfg config.Config) error {
	_, _, err := journal.Import(ctx, cfg.StateDir, false)
	if err == nil {
		err = journal.Made(cfg.StateDir)
	}
	if errors.Is(err, journal.ErrNotFound) {
		return fmt.Errorf("there is no journal in %s: no call was made yet", cfg.StateDir)
	}
	return Tampered(err)
}

// Tampered gives the error of a changed journal its exit code.
func Tampered(err error) error {
	if errors.Is(err, journal.ErrTampered) {
		return console.Exit(console.ExitTampered, err)
	}
	return err
}

// Call is a recorded call, in the JSON form that toold show prints.
type Call struct {
	Daemon       string              `json:"daemon,omitempty"` // in a team store
	CallID       string              `json:"tool_call_id"`
	Client       string              `json:"client"`
	AgentID      string              `json:"agent_id,omitempty"`
	BackgroundOf string              `json:"background_of,omitempty"`
	Workspace    string              `json:"workspace,omitempty"`
	ToolName     string              `json:"tool_name"`
	Arguments    string              `json:"arguments"` // as received
	State        journal.State       `json:"state"`
	ReceivedAt   string              `json:"received_at"`
	DecidedAt    string              `json:"decided_at,omitempty"`
	IntendedAt   string              `json:"intended_at,omitempty"` // from then on it may have run
	StartedAt    string              `json:"started_at,omitempty"`
	ReturnedAt   string              `json:"returned_at,omitempty"`
	DeliveredAt  string              `json:"delivered_at,omitempty"`
	Messages     []Message           `json:"messages,omitempty"` // other than request and return
	Decision     *message.Decision   `json:"decision"`           // null = not yet decided
	Return       *message.ToolReturn `json:"return"`             // null = not yet returned, or lost
	Lost         string              `json:"lost,omitempty"`     // why a text of the call cannot be read
}

// Show prints the calls with an id.
func Show(ctx context.Context, c console.Console, log *journal.Journal, id string) error {
	calls, err := log.Select(ctx, journal.CallQuery{ID: id, Ascending: true, Limit: math.MaxInt32})
	if len(calls) == 0 {
		err = errors.Join(fmt.Errorf("the journal has no call %q; toold log lists what it has", id), err)
	}
	for _, rec := range calls {
		s, failed := shown(rec, rec.Arguments)
		if failed == nil {
			s.Messages, failed = messagesAbout(ctx, log, rec)
			failed = errors.Join(c.Print(s, s.String()), failed, rec.Lost)
		}
		err = errors.Join(err, failed)
	}
	return err
}

func messagesAbout(ctx context.Context, log *journal.Journal, rec journal.Record) (list []Message, err error) {
	query := journal.Query{
		Client: rec.Client, AgentID: rec.AgentID, CallID: rec.ID, Ascending: true, Limit: 1000,
		MessageTypes: []string{"approval_response_message", "connection_decision"},
	}
	for more := true; more; {
		page, failed := log.List(ctx, query)
		err = cmp.Or(err, failed)
		for _, m := range page.Messages {
			if query.AfterSeq = m.Seq; m.AgentID == rec.AgentID { // a query without an agent matches all
				err = cmp.Or(err, m.Lost)
				list = append(list, Message{m.Seq, message.Instant(m.Time), m.Direction, m.Client, m.Body})
			}
		}
		more = page.HasMore
	}
	return list, err
}

func shown(rec journal.Record, arguments []byte) (Call, error) {
	s := Call{
		CallID: rec.ID, Client: rec.Client, AgentID: rec.AgentID, BackgroundOf: rec.BackgroundOf, Workspace: rec.Workspace, ToolName: rec.Tool,
		Arguments: string(arguments), State: rec.State, ReceivedAt: message.Instant(rec.ReceivedAt),
		DecidedAt: message.Instant(rec.DecidedAt), IntendedAt: message.Instant(rec.IntendedAt), StartedAt: message.Instant(rec.StartedAt),
		ReturnedAt: message.Instant(rec.ReturnedAt), DeliveredAt: message.Instant(rec.DeliveredAt),
	}
	var err error
	if s.Decision, err = Decided(rec); err != nil {
		return s, err
	}
	if rec.Lost != nil {
		s.Lost = rec.Lost.Error()
	}
	if len(rec.Result) == 0 {
		return s, nil
	}
	ret, err := message.Record(rec.Result).Return()
	if err == nil {
		s.Return = &ret
	} else if rec.Lost == nil {
		return s, fmt.Errorf("cannot read the return of %q: %w", rec.ID, err)
	}
	return s, nil
}

// Decided returns the decision of a record, or nil if there is none yet.
func Decided(rec journal.Record) (*message.Decision, error) {
	d := rec.Decision
	if d.Action == "" {
		return nil, nil
	}
	said := &message.Decision{Action: d.Action, By: d.By, Rule: d.Rule, Source: d.Source, Reason: d.Reason, Person: d.Person}
	if d.Widened == "" {
		return said, nil
	}
	if err := json.Unmarshal([]byte(d.Widened), &said.Widened); err != nil {
		return nil, fmt.Errorf("cannot read what was added to the sandbox of %q: %w", rec.ID, err)
	}
	return said, nil
}

// String returns the call as text. An agent wrote much of it, so control characters are escaped and continuation
// lines indented.
func (s Call) String() string {
	var b strings.Builder
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%-10s %s\n", name, strings.ReplaceAll(display.Visible(text), "\n", "\n           "))
		}
	}
	line("call", fmt.Sprintf("%s  %s, asked by %s at %s", s.CallID, s.ToolName, strings.Join(strings.Fields(s.Client+" "+s.AgentID), ", agent "), s.ReceivedAt))
	line("runs on of", s.BackgroundOf)
	line("workspace", s.Workspace)
	line("arguments", s.Arguments)
	if d := s.Decision; d != nil {
		line("decision", describe.Decision(*d))
	}
	for _, step := range []struct{ name, at string }{{"decided", s.DecidedAt}, {"to be run", s.IntendedAt}, {"started", s.StartedAt}, {"returned", s.ReturnedAt}, {"delivered", s.DeliveredAt}} {
		line(step.name, step.at)
	}
	for _, m := range s.Messages {
		line("message", m.Time+"  "+string(m.Message))
	}
	line("lost", s.Lost)
	r := s.Return
	if r == nil {
		line("state", string(s.State))
		return b.String()
	}
	if r.Sandbox != nil {
		line("sandbox", describe.WireSandbox(*r.Sandbox))
	}
	for _, d := range r.Denials {
		line("denied", describe.Denial(d))
	}
	line("outcome", describe.Outcome(*r)+" after "+fmt.Sprint(r.DurationMS)+" ms, at "+s.ReturnedAt)
	line("result", strings.TrimSuffix(r.Result, "\n"))
	return b.String()
}
