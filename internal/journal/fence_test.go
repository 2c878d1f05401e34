package journal_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/journal"
)

func TestFencesOutliveTheDaemon(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, err := journal.Open(t.Context(), dir, journal.Self())
	must(t, err)
	fence := func(client, id string) bool {
		t.Helper()
		fenced, err := j.Fence(t.Context(), client, id, 3)
		must(t, err)
		return fenced
	}
	receive(t, j, call("used"))
	if fence("agent", "used") || !fence("somebody", "used") {
		t.Error("an id is the client's own: it is fenced unless that client has used it")
	}
	for i := range 5 {
		id := fmt.Sprint(i)
		for range 2 { // again is no matter
			if !fence("agent", id) {
				t.Errorf("%s was not fenced", id)
			}
		}
	}
	j.Unfence("agent", "3", fails(t))
	must(t, j.Close())
	j = open(t, dir)
	got := j.Fences()
	if diff := cmp.Diff(map[string][]string{"somebody": {"used"}, "agent": {"2", "4"}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestBackgroundCallsAreUntoldUntilTheyAreDelivered(t *testing.T) {
	t.Parallel()
	j := open(t, t.TempDir())
	var keys []journal.Key
	for _, id := range []string{"plain", "b1", "b2", "b3", "running"} {
		c := call(id)
		if id != "plain" {
			c.BackgroundOf = "parent"
		}
		if id == "running" {
			receive(t, j, c)
			continue
		}
		keys = append(keys, receive(t, j, c))
		_, err := finish(t.Context(), j, keys[len(keys)-1], journal.Outcome{})
		must(t, err)
	}
	j.Delivered(keys[2], fails(t))
	untold := func(client string, limit int) (ids []string) {
		t.Helper()
		list, err := j.Untold(t.Context(), client, limit)
		must(t, err)
		for _, r := range list {
			ids = append(ids, r.ID)
		}
		return ids
	}
	if diff := cmp.Diff([][]string{{"b1", "b3"}, {"b1"}, nil}, [][]string{untold("agent", 10), untold("agent", 1), untold("somebody", 10)}); diff != "" {
		t.Error(diff)
	}
}
