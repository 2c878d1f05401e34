package journal_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/must"
)

func TestACallIsBegunOnce(t *testing.T) {
	t.Parallel()
	j := open(t, t.TempDir())
	rec, fresh, err := j.Begin(t.Context(), call("c1"), allow)
	if err != nil || !fresh || rec.State != journal.Intended {
		t.Fatalf("Begin: fresh %v, %+v, %v", fresh, rec, err)
	}
	stored, err := j.FindAny(t.Context(), "c1")
	if err != nil || stored.State != journal.Intended || stored.Decision != allow || stored.IntendedAt.IsZero() || stored.Key != rec.Key {
		t.Errorf("record is %+v, %v", stored, err)
	}
	again, fresh, err := j.Begin(t.Context(), call("c1"), journal.Decision{Action: "deny"})
	if err != nil || fresh || again.Decision != allow {
		t.Errorf("second Begin: fresh %v, %+v, %v", fresh, again, err)
	}
}

func TestACallIsAnsweredAsItIsRecorded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, dir)
	ctx := t.Context()
	made := func(seq int64) (string, []byte, error) {
		return fmt.Sprint("message-", seq), fmt.Appendf(nil, `{"seq_id":%d}`, seq), nil
	}
	_, fresh, err := j.Answer(ctx, call("refused"), false, journal.Outcome{Status: "error", ErrorType: "denied", Decision: journal.Decision{Action: "deny"}}, made)
	if err != nil || !fresh {
		t.Fatalf("Answer: fresh %v, %v", fresh, err)
	}
	if _, fresh, err = j.Answer(ctx, call("read"), true, journal.Outcome{Status: "success", Decision: allow}, made); err != nil || !fresh {
		t.Fatalf("Answer: fresh %v, %v", fresh, err)
	}
	refused, err := j.FindAny(ctx, "refused")
	if err != nil || !refused.IntendedAt.IsZero() || refused.Decision.Action != "deny" || string(refused.Result) != `{"seq_id":2}` {
		t.Errorf("the refused call is %+v, %v", refused, err)
	}
	read, err := j.FindAny(ctx, "read")
	if err != nil || read.IntendedAt.IsZero() || read.Decision != allow || string(read.Result) != `{"seq_id":4}` {
		t.Errorf("the call that ran is %+v, %v", read, err)
	}
	again, fresh, err := j.Answer(ctx, call("read"), true, journal.Outcome{Status: "error"}, made)
	if err != nil || fresh || string(again.Result) != `{"seq_id":4}` {
		t.Errorf("second Answer: fresh %v, %+v, %v", fresh, again, err)
	}
	verify(t, dir)
}

// Records that are written together: those that fail take none of the others
// with them.
func TestAFailingRecordSpoilsNoOther(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, dir)
	ended := receive(t, j, call("ended"))
	must.Get(finish(j, ended, journal.Outcome{Status: "success"}))(t)
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := range 10 {
				if g%4 == 0 {
					wantErr(t, "a second intent", j.Intend(ended, allow), journal.ErrState)
					continue
				}
				if err := cycle(t.Context(), j, call(fmt.Sprintf("%d-%d", g, i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	calls, err := j.Calls(t.Context(), 0, 1000)
	if err != nil || len(calls) != 1+12*10 {
		t.Errorf("%d calls are recorded, want %d (%v)", len(calls), 1+12*10, err)
	}
	verify(t, dir)
}

func TestWhatNobodyWaitsForIsWrittenSoon(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, other := open(t, dir), open(t, dir)
	rec, _, err := j.Begin(t.Context(), call("c1"), allow)
	must.Do(t, err)
	must.Get(finish(j, rec.Key, journal.Outcome{Status: "success"}))(t)
	j.Delivered(rec.Key, fails(t))
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		seen := must.Get(other.FindAny(t.Context(), "c1"))(t)
		if seen.State == journal.Delivered {
			break
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("it is not written")
		}
	}
}

func TestTheStampOfARequestIsTheJournalsOwn(t *testing.T) {
	t.Parallel()
	j := open(t, t.TempDir())
	for i, body := range []string{
		`{"otid":"o"}`, `{ "otid":"o" }`, `{}`, `{"id":"theirs","seq_id":99,"date":"x","message_type":"y","otid":"o"}`,
		`{"\u0069d":"theirs","otid":"o"}`, `{"arguments":{"id":"kept"}}`,
	} {
		c := call(fmt.Sprint(i))
		c.Message = []byte(body)
		receive(t, j, c)
		page := must.Get(j.List(t.Context(), journal.Query{CallID: c.ID}))(t)
		got := map[string]any{}
		must.Do(t, json.Unmarshal(page.Messages[0].Body, &got))
		m := page.Messages[0]
		if got["id"] != m.ID || got["seq_id"] != float64(m.Seq) || got["message_type"] != c.MessageType || strings.Count(string(m.Body), `"id"`)+strings.Count(string(m.Body), "theirs") > 2 {
			t.Errorf("%s was recorded as %s", body, m.Body)
		}
	}
	if err := func() error {
		c := call("broken")
		c.Message = []byte(`["no object"]`)
		_, _, err := j.Receive(t.Context(), c)
		return err
	}(); err == nil {
		t.Error("a message that is no object was recorded")
	}
}
