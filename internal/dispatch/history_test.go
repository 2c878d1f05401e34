package dispatch

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
)

func TestTheHistoryHasTheLatestCalls(t *testing.T) {
	t.Parallel()
	b := newBench(t, policy.Ask, &probe{})
	defer b.stop(t)
	before := time.Now()
	leave := b.approvals.Join(decider(b, approval.Verdict{Approve: true, By: "ada"}))
	for i := range 3 {
		b.call(t, fmt.Sprint("call_", i), fmt.Sprintf(`{"command": "ls %d"}`, i))
	}
	leave()
	b.call(t, "call_3", `{"file_path": "a\u001bb"}`)
	for _, row := range []struct {
		since time.Time
		most  int
		want  []string
	}{
		{before, 0, []string{"probe ls 0: true true true", "probe ls 1: true true true", "probe ls 2: true true true", `probe a\u{001b}b: false false false`}},
		{time.Time{}, 2, []string{"probe ls 2: true true true", `probe a\u{001b}b: false false false`}},
		{time.Now(), 0, nil},
	} {
		h := must.Get(History(t.Context(), b.journal, row.since, row.most, func(string, json.RawMessage) ([]policy.Effect, error) { return nil, nil }))(t)
		var got []string
		for _, c := range h.Calls {
			got = append(got, fmt.Sprint(c.Text, ": ", c.ByPerson, " ", c.Allowed, " ", c.Worked))
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("since %v, at most %d: (-want +got)\n%s", row.since, row.most, diff)
		}
	}
}

// A person's own arguments speak for no rule about those of the agent.
func TestAnEditedCallIsNotApprovedInTheHistory(t *testing.T) {
	t.Parallel()
	b := newBench(t, policy.Ask, &probe{})
	defer b.stop(t)
	ls := `{"command": "ls"}`
	for i, v := range []approval.Verdict{{}, {Arguments: ls}, {Arguments: ls, Before: true}} {
		v.Approve, v.By = true, "ada"
		leave := b.approvals.Join(decider(b, v))
		b.call(t, fmt.Sprint("call_", i), fmt.Sprintf(`{"command": "rm %d"}`, i))
		leave()
	}
	h := must.Get(History(t.Context(), b.journal, time.Time{}, 0, func(string, json.RawMessage) ([]policy.Effect, error) { return nil, nil }))(t)
	if len(h.Calls) != 3 || h.Calls[0].Approved != 1 || h.Calls[1].Approved+h.Calls[2].Approved != 0 {
		t.Errorf("got %+v", h.Calls)
	}
}
