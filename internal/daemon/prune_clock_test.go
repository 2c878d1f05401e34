package daemon

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/must"
)

func partsAfterPrune(t *testing.T, cfg config.Config, j *journal.Journal) int {
	t.Helper()
	must.Do(t, newPruner(cfg, j).prune(t.Context()))
	parts := must.Get(j.Parts())(t)
	return len(parts)
}

func filled(t *testing.T, cfg config.Config, client string) {
	t.Helper()
	j := must.Get(journal.Open(t.Context(), cfg.StateDir, journal.Self()))(t)
	fillPart(t, j, client)
	must.Do(t, j.Close())
}

// A machine without a clock of its own may record in the year 2000, until it has asked others for the time.
func TestAPartWrittenWithAClockBehindIsNotOld(t *testing.T) {
	t.Parallel()
	cfg, _ := keptCaches(t)
	filled(t, cfg, "agent")
	synctest.Test(t, func(t *testing.T) { // begins in the year 2000
		j := keptJournal(t, cfg)
		for i := 0; ; i++ {
			if parts, err := j.Parts(); err != nil || len(parts) > 1 {
				break
			}
			k, _, err := j.Begin(t.Context(), journal.Call{Client: "behind", ID: fmt.Sprint(i), Message: []byte(`{"text":"` + strings.Repeat("x ", 30<<10) + `"}`)}, journal.Decision{Action: "allow"})
			if err != nil {
				t.Fatal(err)
			}
			ended(t, j, k.Key)
		}
	})
	if left := partsAfterPrune(t, cfg, keptJournal(t, cfg)); left != 2 {
		t.Errorf("%d parts are left", left)
	}
}

// One leap of the clock makes no part old: calls of a minute ago could run again.
func TestALeapOfTheClockMakesNoPartOld(t *testing.T) {
	t.Parallel()
	cfg, _ := keptCaches(t)
	synctest.Test(t, func(t *testing.T) {
		filled(t, cfg, "agent")
		<-time.After(100_000 * time.Hour) // of the clock of the test
		j := keptJournal(t, cfg)
		began := func(id string) {
			rec, _, err := j.Begin(t.Context(), journal.Call{Client: "later", ID: id, Message: []byte(`{}`)}, journal.Decision{Action: "allow"})
			if err != nil {
				t.Fatal(err)
			}
			ended(t, j, rec.Key)
		}
		if left := partsAfterPrune(t, cfg, j); left != 1 {
			t.Errorf("%d parts are left at once", left)
		}
		began("first") // the log has the leap now
		if left := partsAfterPrune(t, cfg, j); left != 1 {
			t.Errorf("%d parts are left after a call", left)
		}
		for i := range 5 {
			<-time.After(11 * time.Minute) // of the clock of the test
			began(fmt.Sprint(i))
		}
		if left := partsAfterPrune(t, cfg, j); left != 1 {
			t.Errorf("%d parts are left before they are old", left)
		}
		<-time.After(11 * time.Minute) // of the clock of the test
		if left := partsAfterPrune(t, cfg, j); left != 0 {
			t.Errorf("%d old parts are left", left)
		}
	})
}

// A clock that was years ahead once keeps nothing for ever.
func TestPartsAfterAClockThatWasAheadGoByAge(t *testing.T) {
	t.Parallel()
	cfg, _ := keptCaches(t)
	synctest.Test(t, func(t *testing.T) {
		<-time.After(100_000 * time.Hour)
		filled(t, cfg, "ahead")
	})
	synctest.Test(t, func(t *testing.T) {
		filled(t, cfg, "right")
		filled(t, cfg, "more")
		j := keptJournal(t, cfg)
		for i := range 20 {
			<-time.After(cfg.Limits.RecordKeep / 5)
			k, _, err := j.Begin(t.Context(), journal.Call{Client: "later", ID: fmt.Sprint(i), Message: []byte(`{}`)}, journal.Decision{Action: "allow"})
			if err != nil {
				t.Fatal(err)
			}
			ended(t, j, k.Key)
		}
		if left := partsAfterPrune(t, cfg, j); left != 0 {
			t.Errorf("%d parts are left", left)
		}
	})
}
