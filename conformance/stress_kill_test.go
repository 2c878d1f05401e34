//go:build linux

package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toold/toold/client"
	"github.com/toold/toold/conformance/suite"
	"github.com/toold/toold/conformance/suite/execution"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/journal/seal"
	"github.com/toold/toold/message"
	"github.com/toold/toold/tools/spool"
)

// TestStressNoCallRunsTwiceOrIsLost ends daemons at random moments, nine of ten with SIGKILL,
// while eight clients make calls that run at once, wait for one of three places or wait for
// a person, who takes their time. What a client was not answered it sends again, with the
// same id. Each call appends a line to a file. After each end the journal is whole, but for a
// write that SIGKILL has torn, which the next daemon cuts off.
func TestStressNoCallRunsTwiceOrIsLost(t *testing.T) {
	t.Parallel()
	n := amount(t, "TOOLD_STRESS_KILLS", 6)
	if why := unconfined(t.Context()); why != "" {
		t.Skip(why)
	}
	s := newSiege(t)
	begun := time.Now()
	for s.round = range n {
		s.raid(false)
		if s.round%100 == 99 {
			t.Logf("round %d after %v: %d calls, %d answered", s.round+1, time.Since(begun).Round(time.Second), len(s.sent), len(s.ends))
		}
	}
	s.raid(true)
	s.check()
}

// siege is a site whose daemons are killed.
type siege struct {
	t       *testing.T
	site    *site
	program string
	round   int
	torn    int // ends of the journal

	mu      sync.Mutex
	sent    map[string]bool // ids
	ends    map[string][]message.ToolReturn
	pending [8]*client.Call // of each client: not answered yet
}

func newSiege(t *testing.T) *siege {
	t.Helper()
	s := &siege{t: t, sent: map[string]bool{}, ends: map[string][]message.ToolReturn{}}
	var err error
	if s.program, err = underTest.pathOf(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if s.site, err = newExecSite(dir, execution.Case{}); err != nil {
		t.Fatal(err)
	}
	rules, err := policyText(setup{Default: "allow", Policy: json.RawMessage(`[{"ask": "bash sleep 0.001*"}]`)})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "policy.yaml"), rules, 0o600)
	}
	if err == nil {
		err = s.site.add(map[string]any{"limits": map[string]any{"concurrent_calls": 3, "concurrent_per_connection": 3, "linger": "10m"}, "approval": map[string]string{"timeout": "1h"}})
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// raid starts a daemon, has the clients repeat what was not answered and, unless it is the
// last, go on until the daemon is ended.
func (s *siege) raid(last bool) {
	limit, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	d, err := startDaemon(limit, s.program, s.site)
	if err != nil {
		s.t.Fatal(err)
	}
	defer d.kill()
	slowly := func(c *conn, kind int, data []byte) {
		data = bytes.Clone(data)
		time.AfterFunc(time.Duration(rand.Int64N(int64(80*time.Millisecond))), func() { approve(c, kind, data) })
	}
	yes, err := dial(limit, d, "(approver)", 0, d.tokens["approver"], slowly, func() {})
	if err == nil {
		err = greet(limit, yes)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	defer yes.close()
	var busy sync.WaitGroup
	for i := range s.pending {
		c, err := client.Dial(limit, client.Options{URL: d.ws, Token: d.tokens["agent"], Silent: true})
		if err != nil {
			s.t.Fatal(err)
		}
		defer c.Close()
		// Ends with the daemon or, the last time, when nothing is pending.
		busy.Go(func() { s.work(limit, c, i, last) })
	}
	if last {
		busy.Wait()
		if err := d.stop(syscall.SIGTERM); err != nil {
			s.t.Error(err)
		}
		return
	}
	most := 300 * time.Millisecond
	if s.round%8 == 7 {
		most *= 8 // long enough for a question to be made, also on a machine with much to do
	}
	if err := suite.Sleep(limit, time.Duration(rand.Int64N(int64(most)))); err != nil {
		s.t.Fatal(err)
	}
	signal := syscall.SIGKILL
	if s.round%10 == 9 {
		signal = syscall.SIGTERM
	}
	if err := d.stop(signal); err != nil {
		s.t.Error(err)
	}
	busy.Wait()
	s.verify(signal == syscall.SIGKILL)
}

// verify checks that the journal is whole, and the output of calls as it says, and that each torn end of it was cut off by the next daemon.
func (s *siege) verify(killed bool) {
	output := func(call journal.Key) (string, error) {
		return spool.Sum(filepath.Join(s.site.state, "spool", fmt.Sprint(int64(call))))
	}
	r, err := journal.Verify(context.WithoutCancel(s.t.Context()), s.site.state, seal.Checks{}, output)
	switch {
	case killed && errors.Is(err, journal.ErrTampered) && strings.Contains(err.Error(), "toold was killed while it wrote them") && s.endsWithPage():
		s.torn++
	case err != nil:
		s.t.Fatalf("after round %d: %v", s.round+1, err)
	case len(r.Cuts) != s.torn:
		s.t.Fatalf("after round %d: %d ends were torn, and these were cut off: %v", s.round+1, s.torn, r.Cuts)
	}
}

// endsWithPage reports whether the journal ends at the end of a page, where Linux may end the write
// of a process that is killed. The last bytes of what was written may be zeros: those in the head
// of a record.
func (s *siege) endsWithPage() bool {
	segments, err := filepath.Glob(filepath.Join(s.site.state, "journal", "*.log"))
	if err != nil || len(segments) == 0 {
		s.t.Fatalf("the journal has no segment: %v", err)
	}
	text, err := os.ReadFile(segments[len(segments)-1])
	if err != nil {
		s.t.Fatal(err)
	}
	end := len(bytes.TrimRight(text, "\x00"))
	const head = 57
	return -end&(os.Getpagesize()-1) < head
}

// work makes the calls of one client.
func (s *siege) work(ctx context.Context, c *client.Client, i int, last bool) {
	for n := 0; ; n++ {
		if s.pending[i] == nil {
			if last {
				return
			}
			s.pending[i] = s.newCall(i, n)
		}
		ret, err := c.Call(ctx, *s.pending[i], client.Events{})
		if err != nil {
			if last {
				s.t.Errorf("%s: %v", s.pending[i].ID, err)
			}
			return
		}
		if ret.ErrorType != nil && strings.Contains(ret.Result, "takes no call") { // with the same id, later
			return
		}
		s.mu.Lock()
		s.ends[s.pending[i].ID] = append(s.ends[s.pending[i].ID], ret)
		s.mu.Unlock()
		s.pending[i] = nil
	}
}

// newCall makes a call with an id of its own.
func (s *siege) newCall(i, n int) *client.Call {
	id := fmt.Sprintf("siege-%d-%d-%d", s.round, i, n)
	s.mu.Lock()
	s.sent[id] = true
	s.mu.Unlock()
	script := "echo " + id + " | tee -a effects"
	switch rand.IntN(5) {
	case 0:
		script += "; sleep 0.05"
	case 1:
		script = "sleep 0.02; " + script
	case 2:
		script = "sleep 0.001; " + script // a person is asked
	case 3:
		script += " # " + strings.Repeat("x", 5_000) // long to analyse, so it is recorded before
	}
	return &client.Call{ID: id, Tool: "bash", Arguments: map[string]any{"command": script, "terminal": "off", "background": rand.IntN(8) == 0}}
}

// check compares what the clients were sent, what happened and what is on record.
func (s *siege) check() {
	effects := map[string]int{}
	text, err := os.ReadFile(filepath.Join(s.site.workspace, "effects"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		effects[strings.TrimSpace(line)]++
	}
	records := s.records()
	kinds := map[string]int{}
	again := 0
	for id := range s.sent {
		ends, ran, list := s.ends[id], effects[id], records[id]
		if len(ends) != 1 || ran > 1 || len(list) == 0 {
			s.t.Errorf("%s: %d returns, ran %d times, recorded %d times", id, len(ends), ran, len(list))
			continue
		}
		end := "success"
		if e := ends[0].ErrorType; e != nil {
			end = string(*e)
		}
		kinds[fmt.Sprintf("%s with %d effects", end, ran)]++
		if d := ends[0].Decision; d != nil && d.By == "person" {
			kinds["allowed by a person"]++
		}
		again += len(list) - 1
		possible := end == "success" && (ran == 1 || ends[0].Background != nil) || end == "unknown_after_crash" || end == "shutdown"
		if !possible {
			s.t.Errorf("%s: %s, ran %d times: %s", id, end, ran, ends[0].Result)
		}
		for i, rec := range list {
			early := i < len(list)-1
			if rec.ReturnedAt.IsZero() || early != (rec.ErrorType == string(message.NotStartedAfterCrash)) {
				s.t.Errorf("%s: record %d of %d is %s, %s", id, i+1, len(list), rec.State, rec.ErrorType)
			}
		}
	}
	s.t.Logf("%d calls: %v; %d had not started before a crash and ran when they were sent again; %d ends of the journal were torn", len(s.sent), kinds, again, s.torn)
	s.verify(false)
}

// records returns what the journal has of each call, in order. A background call that is
// on record as not started has had no effect.
func (s *siege) records() map[string][]journal.Record {
	ctx := context.WithoutCancel(s.t.Context())
	j, err := journal.Open(ctx, s.site.state, journal.Self())
	if err != nil {
		s.t.Fatal(err)
	}
	defer j.Close()
	all := map[string][]journal.Record{}
	for after := journal.Key(0); ; {
		list, err := j.Calls(ctx, after, 1000)
		if err != nil {
			s.t.Fatal(err)
		}
		if len(list) == 0 {
			return all
		}
		for _, rec := range list {
			after = rec.Key
			all[rec.ID] = append(all[rec.ID], rec)
			if rec.BackgroundOf != "" && rec.ReturnedAt.IsZero() {
				s.t.Errorf("the background call of %s is %s", rec.BackgroundOf, rec.State)
			}
		}
	}
}
