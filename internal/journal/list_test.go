package journal_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/must"
)

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
		must.Get(j.Append(journal.Message{Direction: journal.In, Body: []byte("{}")}))(t)
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
	must.Get(finish(j, k, journal.Outcome{Status: "success"}))(t)
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
		must.Get(j.Append(journal.Message{Type: "note", Direction: journal.In, Body: body}))(t)
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
