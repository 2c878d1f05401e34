package journal

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
)

// A part that cannot be read hides nothing of the others, and is named.
func TestWhatIsAroundALostPartIsListed(t *testing.T) {
	t.Parallel()
	for what, lose := range map[string]func(part, index string) error{
		"cut off":           func(part, _ string) error { return os.Truncate(part, 200) },
		"away":              func(part, _ string) error { return os.Remove(part) },
		"without an index":  func(part, index string) error { return errors.Join(os.Truncate(part, 200), os.RemoveAll(index)) },
		"away and an index": func(part, index string) error { return errors.Join(os.Remove(part), os.RemoveAll(index)) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			j := long(t, dir)
			defer j.Close()
			before := listed(t, j, Query{Client: "agent"}, nil)
			must.Do(t, lose(filepath.Join(dir, "journal", "00000002.log"), filepath.Join(dir, "journal", indexName)))
			callsAround(t, j)
			for _, q := range []Query{{Client: "agent", Limit: 7}, {Client: "agent", Limit: 7, Ascending: true}} {
				lost := 0
				after := listed(t, j, q, func(err error) {
					if lost++; !strings.Contains(err.Error(), "00000002") {
						t.Errorf("%+v: the part is not named: %v", q, err)
					}
				})
				first, last := after[0], after[len(after)-1]
				if q.Ascending {
					first, last = last, first
				}
				if lost == 0 || len(after) < len(before)/3 || len(after) > len(before)-10 || first != before[0] || last != before[len(before)-1] {
					t.Errorf("%+v: %d of %d messages from %s to %s, and %d pages without some", q, len(after), len(before), first, last, lost)
				}
			}
			if p, err := j.List(t.Context(), Query{Limit: 5}); err != nil || len(p.Messages) != 5 {
				t.Errorf("%d messages that are behind it, %v", len(p.Messages), err)
			}
		})
	}
}

// callsAround checks that the calls around a lost part are listed.
func callsAround(t *testing.T, j *Journal) {
	t.Helper()
	list, err := j.Latest(t.Context(), 0, 1000)
	if err == nil || len(list) < 40 || list[0].Key != 100 || list[len(list)-1].Key != 1 {
		t.Errorf("%d calls, %v", len(list), err)
	}
	found, err := j.Select(t.Context(), CallQuery{Limit: 1000})
	if err == nil || len(found) != len(list) {
		t.Errorf("%d calls, %v", len(found), err)
	}
	if list, err := j.Latest(t.Context(), 0, 10); err != nil || len(list) != 10 {
		t.Errorf("%d calls that are behind it, %v", len(list), err)
	}
}

// listed reads all pages of a query, and returns the ids of the messages.
func listed(t *testing.T, j *Journal, q Query, failed func(error)) (ids []string) {
	t.Helper()
	for {
		p, err := j.List(t.Context(), q)
		if err != nil && failed == nil || len(p.Messages) == 0 {
			t.Fatalf("%+v: %d messages, %v", q, len(p.Messages), err)
		}
		if err != nil {
			failed(err)
		}
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
