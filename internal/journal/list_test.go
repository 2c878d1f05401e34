package journal_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/must"
)

// oneOf draws from a few values, the empty one included.
func oneOf(r *rand.Rand, prefix string) string {
	if n := r.IntN(4); n > 0 {
		return fmt.Sprint(prefix, n)
	}
	return ""
}

// matches is List's meaning, written down once more without SQL.
func matches(m journal.Message, q journal.Query, seqs map[string]int64) bool {
	for _, f := range [][2]string{
		{q.Client, m.Client},
		{q.AgentID, m.AgentID},
		{q.ConversationID, m.ConversationID},
		{q.RunID, m.RunID},
		{q.StepID, m.StepID},
		{q.OTID, m.OTID},
		{q.CallID, m.CallID},
		{q.Status, m.Status},
	} {
		if f[0] != "" && f[0] != f[1] {
			return false
		}
	}
	return (q.Before == "" || m.Seq < seqs[q.Before]) && (q.After == "" || m.Seq > seqs[q.After]) &&
		(len(q.MessageTypes) == 0 || slices.Contains(q.MessageTypes, m.Type))
}

// Random messages, random queries: each walk through the pages of a query, in
// either order, gives every message that matches, once and in order.
func TestPagesTogetherAreTheWholeList(t *testing.T) {
	t.Parallel()
	j := open(t, t.TempDir())
	r := rand.New(rand.NewPCG(1, 2))
	var all []journal.Message
	seqs := map[string]int64{}
	for i := range 120 {
		m := journal.Message{
			ID: fmt.Sprint("m", i), Type: oneOf(r, "type"), Direction: journal.In, Client: oneOf(r, "client"),
			AgentID: oneOf(r, "agent"), ConversationID: oneOf(r, "conv"), RunID: oneOf(r, "run"), StepID: oneOf(r, "step"),
			OTID: oneOf(r, "otid"), CallID: oneOf(r, "call"), Status: oneOf(r, "status"), Body: []byte("{}"),
		}
		seq := must.Get(j.Append(t.Context(), m))(t)
		m.Seq = seq
		all, seqs[m.ID] = append(all, m), seq
	}
	for range 150 {
		q := randomQuery(r)
		var want []string
		for _, m := range all {
			if matches(m, q, seqs) {
				want = append(want, m.ID)
			}
		}
		if !q.Ascending {
			slices.Reverse(want)
		}
		if diff := cmp.Diff(want, walk(t, j, q)); diff != "" {
			t.Fatalf("query %+v (-want +got):\n%s", q, diff)
		}
	}
}

// randomQuery sets each field now and then.
func randomQuery(r *rand.Rand) journal.Query {
	q := journal.Query{Limit: 1 + r.IntN(9), Ascending: r.IntN(2) == 0}
	for _, f := range []struct {
		field  *string
		prefix string
	}{
		{&q.Client, "client"},
		{&q.AgentID, "agent"},
		{&q.ConversationID, "conv"},
		{&q.RunID, "run"},
		{&q.StepID, "step"},
		{&q.OTID, "otid"},
		{&q.CallID, "call"},
		{&q.Status, "status"},
	} {
		if r.IntN(6) == 0 {
			*f.field = oneOf(r, f.prefix)
		}
	}
	if r.IntN(3) == 0 {
		q.Before = fmt.Sprint("m", r.IntN(120))
	}
	if r.IntN(3) == 0 {
		q.After = fmt.Sprint("m", r.IntN(120))
	}
	if r.IntN(3) == 0 {
		q.MessageTypes = []string{"type1", oneOf(r, "type")}
	}
	return q
}

// walk reads a query page by page and returns the ids.
func walk(t *testing.T, j *journal.Journal, q journal.Query) (ids []string) {
	t.Helper()
	for {
		p := must.Get(j.List(t.Context(), q))(t)
		for _, m := range p.Messages {
			ids = append(ids, m.ID)
		}
		if !p.HasMore {
			return ids
		}
		if q.Ascending {
			q.After = p.NextAfter
		} else {
			q.Before = p.NextBefore
		}
	}
}

func TestACursorThatNamesNoMessageIsAnError(t *testing.T) {
	t.Parallel()
	j := open(t, t.TempDir())
	receive(t, j, call("c1"))
	for _, q := range []journal.Query{{Before: "nothing"}, {After: "nothing"}} {
		_, err := j.List(t.Context(), q)
		wantErr(t, fmt.Sprintf("%+v", q), err, journal.ErrNotFound)
	}
}

func TestTheNewestHundredComeFirstUnlessAskedOtherwise(t *testing.T) {
	t.Parallel()
	j := open(t, t.TempDir())
	for range 101 {
		must.Get(j.Append(t.Context(), journal.Message{Direction: journal.In, Body: []byte("{}")}))(t)
	}
	p, err := j.List(t.Context(), journal.Query{})
	must.Do(t, err)
	if len(p.Messages) != 100 || !p.HasMore || p.Messages[0].Seq != 101 {
		t.Errorf("got %d messages from number %d on, more %v", len(p.Messages), p.Messages[0].Seq, p.HasMore)
	}
	p, err = j.List(t.Context(), journal.Query{Ascending: true, Limit: 1000})
	if err != nil || len(p.Messages) != 101 || p.HasMore || p.Messages[0].Seq != 1 {
		t.Errorf("ascending: got %d messages, more %v, %v", len(p.Messages), p.HasMore, err)
	}
}

func TestAListedMessageCarriesTheJournalsID(t *testing.T) {
	t.Parallel()
	j := open(t, t.TempDir())
	c := call("c1")
	c.Message = []byte(`{"id":"chosen by the client","seq_id":99,"text":"<&>"}`)
	k := receive(t, j, c)
	must.Get(finish(t.Context(), j, k, journal.Outcome{Status: "success"}))(t)
	p := must.Get(j.List(t.Context(), journal.Query{Ascending: true}))(t)
	for i, m := range p.Messages {
		var frame struct {
			ID          string `json:"id"`
			Seq         int64  `json:"seq_id"`
			MessageType string `json:"message_type"`
			Date        string `json:"date"`
		}
		must.Do(t, json.Unmarshal(m.Body, &frame))
		if frame.ID != m.ID || frame.Seq != int64(i+1) {
			t.Errorf("message is %s", m.Body)
		}
		if m.Direction == journal.In && (frame.MessageType != m.Type || frame.Date == "" || !strings.Contains(string(m.Body), "<&>")) {
			t.Errorf("message is %s", m.Body)
		}
	}
}

func TestAPageOfLargeMessagesIsCutAndSaysSo(t *testing.T) {
	t.Parallel()
	j := open(t, t.TempDir())
	body := []byte(`{"x":"` + strings.Repeat("x", 5<<20) + `"}`)
	var all []string
	for range 5 {
		must.Get(j.Append(t.Context(), journal.Message{Type: "note", Direction: journal.In, Body: body}))(t)
	}
	q := journal.Query{Ascending: true}
	for {
		p := must.Get(j.List(t.Context(), q))(t)
		if len(p.Messages) == 0 || len(p.Messages) > 2 {
			t.Fatalf("a page has %d messages", len(p.Messages))
		}
		for _, m := range p.Messages {
			all = append(all, m.ID)
		}
		if q.After = p.NextAfter; !p.HasMore {
			break
		}
	}
	if len(all) != 5 {
		t.Errorf("the pages together have %d messages, want 5", len(all))
	}
}
