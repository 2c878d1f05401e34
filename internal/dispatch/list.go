package dispatch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/redact"
	"github.com/toold/toold/message"
)

const endedShown = 100 // answered calls in a list

// List returns unanswered calls, oldest first. Empty client or id means any. With ended, the latest answered calls
// precede them.
func (d *Dispatcher) List(ctx context.Context, client, id string, ended bool) ([]message.CallInfo, error) {
	calls := d.Find(client, id)
	list := []message.CallInfo{}
	if ended {
		records, err := d.opt.Journal.Ended(ctx, client, id, endedShown)
		if err != nil {
			return nil, fmt.Errorf("cannot list the calls that have ended: %w", err)
		}
		for _, rec := range slices.Backward(records) {
			list = append(list, recordInfo(rec))
		}
	}
	for _, c := range calls {
		list = append(list, c.info())
	}
	return list, nil
}

func (c *Call) info() message.CallInfo {
	c.mu.Lock()
	p, capture := c.progress, c.capture
	c.mu.Unlock()
	i := message.CallInfo{
		CallID: c.ID, Asker: c.asker(), ToolName: c.asked.Name,
		State: p.state, Preview: p.preview, PID: p.pid,
		ReceivedAt: message.Instant(c.born), StartedAt: message.Instant(p.startedAt),
	}
	if p.state == message.CallQueued {
		i.Position = p.position
	}
	if c.of != nil {
		i.BackgroundOf = c.of.ID
	}
	if capture != nil {
		i.StdoutBytes, i.StderrBytes, _ = capture.Totals()
	}
	return i
}

func recordInfo(rec journal.Record) message.CallInfo {
	i := message.CallInfo{
		CallID: rec.ID, ToolName: rec.Tool, BackgroundOf: rec.BackgroundOf,
		Asker: message.Asker{Client: rec.Client, AgentID: rec.AgentID, ConversationID: rec.ConversationID},
		State: message.CallEnded, ReceivedAt: message.Instant(rec.ReceivedAt), StartedAt: message.Instant(startOf(rec)),
		EndedAt: message.Instant(rec.ReturnedAt), Outcome: rec.Status, ExitCode: rec.ExitCode, Signal: rec.Signal,
	}
	if rec.ErrorType != "" {
		t := message.ErrorType(rec.ErrorType)
		i.ErrorType = &t
	}
	if ret, err := message.Record(rec.Result).Return(); err == nil {
		i.StdoutBytes, i.StderrBytes, i.Denials = ret.StdoutBytes, ret.StderrBytes, len(ret.Denials)
	}
	return i
}

// startOf returns when an answered call started, or the zero time if it did not.
func startOf(rec journal.Record) time.Time {
	if rec.ErrorType == string(message.NotStartedAfterCrash) {
		return time.Time{}
	}
	return rec.IntendedAt
}

// beginning returns the first line of text, or its beginning if it is long.
func beginning(text string) string {
	const most = 120
	line, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	if len(line) > most {
		line, more = redact.Beginning(line, most), true
	}
	if more {
		line += " …"
	}
	return line
}

// Step is a part of a call's duration.
type Step struct {
	Name     string
	From, To time.Time
}

// Steps in order. A call may skip some.
const (
	StepJudge  = "judge"  // from receipt to the policy's decision
	StepAsk    = "ask"    // awaiting approval
	StepQueue  = "queue"  // waiting for other calls to end
	StepRun    = "run"    // running the tool
	StepRecord = "record" // writing the return
)

// stepped records a step that ends now. Only the call's own goroutine calls it.
func (c *Call) stepped(name string, from time.Time) {
	c.steps = append(c.steps, Step{name, from, time.Now()})
}

// Steps returns an ended call's steps. Only functions passed to Observe may call it, for a Final.
func (c *Call) Steps() []Step { return c.steps }

// Received returns when the call arrived.
func (c *Call) Received() time.Time { return c.born }

// Tool returns the canonical name, or "other" for an unknown tool, so that no text of a client appears in metrics.
func (c *Call) Tool() string {
	if !c.listed {
		return "other"
	}
	return c.tool
}

// States returns the number of unanswered calls in each state.
func (d *Dispatcher) States() map[string]int {
	count := map[string]int{}
	for _, c := range d.Find("", "") {
		c.mu.Lock()
		count[c.progress.state]++
		c.mu.Unlock()
	}
	return count
}
