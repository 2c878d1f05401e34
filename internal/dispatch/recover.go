package dispatch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
	"github.com/toold/toold/tools/spool"
)

// asksWithin limits how long Recover waits for approval requests, so that a broken workspace does not block the start.
const asksWithin = 30 * time.Second

// Recover restores early cancels and open calls of earlier daemons. Kept calls continue when their client has
// reconnected; their approval requests exist when Recover returns, unless ctx ended. Processes of the others are killed
// and returns journaled, which repeated calls receive. It must be called once, before any call is submitted.
func (d *Dispatcher) Recover(ctx context.Context) error {
	asked, cancel := context.WithTimeout(ctx, asksWithin)
	defer cancel()
	d.mu.Lock()
	d.earlyCancels = d.opt.Journal.EarlyCancels()
	d.mu.Unlock()
	open, err := d.opt.Journal.Unfinished(func(r *journal.Record) bool { return !d.opt.Single || !waits(r) })
	if err != nil {
		return fmt.Errorf("cannot read the calls left by the last run: %w", err)
	}
	var kept []*Call
	for _, rec := range open {
		if waits(&rec) {
			if c := d.goOn(rec); c != nil {
				kept = append(kept, c)
				continue
			}
		}
		killed := false
		var alive error
		if rec.Process != "" {
			if killed, alive = d.opt.Kill(rec.Process); alive != nil {
				d.opt.Log.Error("cannot end a process left by the last run", zap.String("call", rec.ID), zap.Error(alive))
			}
		}
		if err := d.recover(rec, alive); err != nil {
			return fmt.Errorf("cannot answer a call left by the last run: %w", err)
		}
		d.opt.Log.Info("answered a call left by the last run", zap.String("call", rec.ID), zap.String("state", string(rec.State)), zap.Bool("killed", killed))
	}
	for _, c := range kept {
		select {
		case <-c.resumed:
		case <-c.ended:
		case <-asked.Done():
		}
	}
	return nil
}

// recover journals the return of one call of a crashed daemon. alive is why its process may still run, or nil.
func (d *Dispatcher) recover(rec journal.Record, alive error) error {
	r := *notStarted()
	switch {
	case rec.State == journal.Running && alive != nil:
		r = refusal{message.UnknownAfterCrash, "toold ended before it recorded how this call ended; how far it got is not known, and what runs of it could not be ended: " + alive.Error() + ". Ask the user to look at it, and at what it changed, before you send it again under a new id"}
	case rec.State == journal.Running:
		r = refusal{message.UnknownAfterCrash, "toold ended before it recorded how this call ended; how far it got is not known, and nothing of it runs any more. Look at what it changed before you send it again under a new id"}
	case rec.BackgroundOf != "":
		r.text = "toold was stopped before this call started; nothing of it ran. Send the call that was to begin it again"
	}
	ret := message.ToolReturn{
		CallID: rec.ID, AgentID: rec.AgentID, ToolName: rec.Tool, RunID: optional(rec.RunID), StepID: optional(rec.StepID), ErrorType: &r.kind, Result: "Error: " + r.text,
	}.Complete()
	o := journalOutcome(ret, outcome{})
	if rec.SpoolDir != "" {
		sum, err := spool.Sum(d.spoolDir(rec.Key))
		if o.Output = cmp.Or(sum, spool.Nothing()); err != nil {
			d.opt.Log.Warn("cannot read the output of a call of the last run", zap.String("call", rec.ID), zap.Error(err))
		}
	}
	_, err := d.opt.Journal.Finish(rec.Key, o, building(ret))
	return err
}

func notStarted() *refusal {
	return &refusal{message.NotStartedAfterCrash, "toold was stopped before this call started; nothing of it ran. Send it again with the same id: it runs then"}
}

type kept struct {
	Program *message.Program `json:"program,omitempty"`
}

func (c *Call) keeping() string {
	text, err := message.Encode(kept{c.program})
	if err != nil {
		return ""
	}
	return string(text)
}

func waits(r *journal.Record) bool {
	return r.Kept != "" && slices.Contains([]journal.State{journal.Received, journal.Waiting, journal.Decided}, r.State)
}

// goOn continues an earlier daemon's call with the current policy. It returns nil if that is impossible.
func (d *Dispatcher) goOn(rec journal.Record) *Call {
	arguments, err := d.opt.Journal.Arguments(rec.Key)
	var k kept
	if err == nil {
		err = json.Unmarshal([]byte(rec.Kept), &k)
	}
	if err != nil {
		d.opt.Log.Error("cannot go on with a call of the last run", zap.String("call", rec.ID), zap.Error(err))
		return nil
	}
	item := ""
	_, work, isPart := strings.Cut(rec.ArgsHash, partMark)
	if isPart {
		item = rec.ID[:max(strings.LastIndex(rec.ID, message.PartMark), 0)]
	}
	c, life := d.newCall(Submission{
		Client: rec.Client, Conn: "kept", Program: k.Program, Dir: rec.Workspace, Keep: true,
		Request: &message.Request{Dialect: message.Dialect(rec.Dialect), Item: item, Work: work, Origin: rec.Origin},
		Call:    message.ToolCall{ID: rec.ID, Name: rec.Tool, Arguments: arguments},
	})
	if c.argsHash() != rec.ArgsHash {
		c.stop(nil)
		return nil
	}
	c.rec, c.again, c.born, c.kept = rec.Key, &rec, rec.ReceivedAt, true
	c.joined, c.resumed = make(chan struct{}), make(chan struct{})
	c.leaving = time.AfterFunc(c.linger, func() { c.stop(errClientGone) })
	d.mu.Lock()
	d.admit(c)
	d.mu.Unlock()
	// Ends as in Submit.
	go d.live(life, c, nil)
	d.opt.Log.Info("goes on with a call of the last run", zap.String("call", rec.ID), zap.String("state", string(rec.State)))
	return c
}

// resumes marks that a kept call has requested approval again, or needs none.
func (c *Call) resumes() {
	if c.joined != nil {
		closeOnce(c.resumed)
	}
}

// rejoined records that a kept call has a watcher. The caller holds mu.
func (c *Call) rejoined() {
	if c.joined != nil && len(c.watchers) == 1 {
		closeOnce(c.joined)
	}
}

// awaitClient waits until the client of a kept call has reconnected. The client may have received a return that could
// not be journaled, and would not expect the call to run.
func (c *Call) awaitClient(ctx context.Context) *refusal {
	if c.joined == nil {
		return nil
	}
	c.resumes()
	select {
	case <-c.joined:
		return nil
	case <-ctx.Done():
		return stopped(ctx)
	}
}

// askedAt returns when approval of the call was first requested.
func (c *Call) askedAt() time.Time {
	if c.again != nil && c.again.State == journal.Waiting {
		return c.again.DecidedAt
	}
	return time.Now()
}

// approvalID returns an id that does not change with a restart, unless what is asked, or a file that counts, has: a late
// answer must not approve what its sender did not see.
func (c *Call) approvalID(asked message.ApprovalRequest, seen map[string]sight) string {
	text := fmt.Appendf(nil, "%d %q %q %q", c.rec, c.key.Client, c.key.Agent, c.key.ID)
	text = fmt.Appendf(text, "%q %q %q %q %q", asked.Rule, asked.Source, asked.Reason, asked.Preview, asked.Effects)
	for _, path := range slices.Sorted(maps.Keys(seen)) {
		text = fmt.Appendf(text, "%q %q", path, seen[path].text())
	}
	sum := sha256.Sum256(text)
	return fmt.Sprintf("approval-%x", sum[:16])
}
