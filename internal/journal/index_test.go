package journal

import (
	"maps"
	"slices"
	"testing"
)

// contents is all that queries give.
type contents struct {
	Calls    []Record
	Messages []Message
	Fences   map[string][]string
}

func dump(t *testing.T, j *Journal) (c contents) {
	t.Helper()
	var err error
	if c.Calls, err = j.Select(t.Context(), CallQuery{Limit: 1 << 30, Ascending: true}); err != nil {
		t.Fatal(err)
	}
	for q := (Query{Ascending: true, Limit: 1000}); ; {
		p, err := j.List(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		c.Messages = append(c.Messages, p.Messages...)
		if q.After = p.NextAfter; !p.HasMore {
			break
		}
	}
	c.Fences = j.Fences()
	maps.DeleteFunc(c.Fences, func(_ string, ids []string) bool { return len(ids) == 0 })
	slices.SortFunc(c.Calls, func(a, b Record) int { return int(a.Key - b.Key) })
	return c
}
