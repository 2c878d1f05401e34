package journal_test

import (
	"fmt"
	"testing"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/must"
)

func TestEarlyCancelsOutliveTheDaemon(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, err := journal.Open(t.Context(), dir, journal.Self())
	must.Do(t, err)
	cancel := func(client string, agent *string, id string) bool {
		t.Helper()
		recorded, err := j.CancelEarly(t.Context(), client, agent, id, 3)
		must.Do(t, err)
		return recorded
	}
	receive(t, j, call("used"))
	own, other, none := "agent-1", "agent-2", ""
	if cancel("agent", nil, "used") || cancel("agent", &own, "used") || !cancel("somebody", nil, "used") || !cancel("somebody", &own, "used") {
		t.Error("an id is the client's own: it is cancelled unless that client has used it")
	}
	if !cancel("agent", &other, "used") || !cancel("agent", &none, "used") {
		t.Error("an id is an agent's own: it is cancelled unless that agent has used it")
	}
	for i := range 5 {
		id := fmt.Sprint(i)
		for range 2 { // again is no matter
			if !cancel("agent", &own, id) {
				t.Errorf("%s was not cancelled early", id)
			}
		}
	}
	j.ForgetEarlyCancel("agent", j.EarlyCancelName(&own, "3"), fails(t))
	for _, name := range []string{"4", j.EarlyCancelName(&other, "4")} { // these are others
		j.ForgetEarlyCancel("agent", name, fails(t))
	}
	must.Do(t, j.Close())
	j = open(t, dir)
	want := map[string][]string{"somebody": {"used", j.EarlyCancelName(&own, "used")}, "agent": {j.EarlyCancelName(&own, "2"), j.EarlyCancelName(&own, "4")}}
	must.Match(t, want, j.EarlyCancels())
}

func TestUndeliveredReturnsBackgroundCallsUntilTheyAreDelivered(t *testing.T) {
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
		must.Get(finish(j, keys[len(keys)-1], journal.Outcome{}))(t)
	}
	j.Delivered(keys[2], fails(t))
	untold := func(client string, limit int) (ids []string) {
		t.Helper()
		list := must.Get(j.Undelivered(t.Context(), client, limit))(t)
		for _, r := range list {
			ids = append(ids, r.ID)
		}
		return ids
	}
	must.Match(t, [][]string{{"b1", "b3"}, {"b1"}, nil}, [][]string{untold("agent", 10), untold("agent", 1), untold("somebody", 10)})
}
