package seal_test

import (
	"cmp"
	"crypto/ed25519"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/toold/toold/internal/journal/seal"
	"github.com/toold/toold/internal/must"
)

func key(t *testing.T) seal.Key {
	t.Helper()
	k := must.Get(seal.Open(filepath.Join(t.TempDir(), "key")))(t)
	return k
}

func link(number uint64) seal.Link { return seal.Link{Number: number, Hash: [32]byte{byte(number)}} }

// A journal whose first two records were removed has records 3 to 5, and 5 signs 4.
func TestAJournalIsComparedWithWhatWasKept(t *testing.T) {
	t.Parallel()
	own, other := key(t), key(t)
	signed := func(k seal.Key, l seal.Link) seal.Checkpoint {
		return k.Checkpoint("", l.Number, l.Hash, time.Unix(1, 0))
	}
	named := func(k seal.Key, l seal.Link) seal.Checkpoint {
		return k.Checkpoint("log", l.Number, l.Hash, time.Unix(1, 0))
	}
	changed := link(4)
	changed.Hash[1] = 1
	for name, c := range map[string]struct {
		checks  seal.Checks
		removed bool
		want    string
	}{
		"nothing":                               {},
		"a link":                                {checks: seal.Checks{Kept: link(4)}},
		"a changed link":                        {checks: seal.Checks{Kept: changed}, want: "record number 4 is not the one that was noted"},
		"a removed link":                        {checks: seal.Checks{Kept: link(2)}, removed: true, want: "record number 2 was removed with its part of the journal, which begins with number 3 now: keep a later link"},
		"its key":                               {checks: seal.Checks{Keys: []ed25519.PublicKey{other.Public(), own.Public()}}},
		"an anchor":                             {checks: seal.Checks{Anchors: []seal.Checkpoint{signed(own, link(1)), signed(own, link(4)), signed(other, changed)}}},
		"a changed anchor":                      {checks: seal.Checks{Anchors: []seal.Checkpoint{signed(own, changed)}}, want: "record number 4 is not the one that was anchored at 1970-01-01T00:00:01Z"},
		"an anchor of no record":                {checks: seal.Checks{Anchors: []seal.Checkpoint{signed(own, link(6))}}, want: "record number 6 is not the one that was anchored at 1970-01-01T00:00:01Z"},
		"anchors of others":                     {checks: seal.Checks{Anchors: []seal.Checkpoint{signed(other, link(4))}}, want: "none of the 1 anchors is signed by a key of this journal: it was made anew, or they are of others"},
		"an anchor of the log":                  {checks: seal.Checks{Anchors: []seal.Checkpoint{named(other, link(4))}}},
		"a changed anchor of the log":           {checks: seal.Checks{Anchors: []seal.Checkpoint{named(own, link(4)), named(other, changed)}}, want: "record number 4 is not the one that was anchored at 1970-01-01T00:00:01Z"},
		"an anchor of the log and of no record": {checks: seal.Checks{Anchors: []seal.Checkpoint{signed(own, link(4)), named(other, link(6))}}, want: "record number 6 is not the one that was anchored at 1970-01-01T00:00:01Z"},
		"removed anchors": {
			checks: seal.Checks{Anchors: []seal.Checkpoint{signed(own, link(2))}}, removed: true,
			want: "all anchors (1) are of records that were removed: run toold audit anchor more often than limits.record_keep and limits.state_bytes remove records",
		},
	} {
		v := c.checks.Compare("log")
		for n := range uint64(3) {
			v.Record(link(3 + n))
		}
		if err := v.Checkpoint(signed(own, link(4))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		err := v.End()
		var removed *seal.RemovedError
		if said := fmt.Sprint(err); said != cmp.Or(c.want, "<nil>") || errors.As(err, &removed) != c.removed {
			t.Errorf("%s: %v", name, err)
		}
		if v.Gone != 2 || v.Count != 1 || v.Signed != 4 {
			t.Errorf("%s: found %+v", name, v.Found)
		}
	}
}

func TestOnlyTheGivenKeysMayHaveSigned(t *testing.T) {
	t.Parallel()
	own, other := key(t), key(t)
	c := own.Checkpoint("", 4, link(4).Hash, time.Unix(1, 0))
	if err := (seal.Checks{Keys: []ed25519.PublicKey{other.Public()}}).Compare("log").Checkpoint(c); err == nil {
		t.Error("another key was accepted")
	}
	if err := (seal.Checks{}).Compare("log").Checkpoint(own.Checkpoint("another", 4, link(4).Hash, time.Unix(1, 0))); err == nil {
		t.Error("a checkpoint of another log was accepted")
	}
	c.Number++
	if err := (seal.Checks{}).Compare("log").Checkpoint(c); err == nil {
		t.Error("a signature of another record was accepted")
	}
}

func TestAPipeIsNoKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	must.Do(t, syscall.Mkfifo(path, 0o600))
	if _, err := seal.Open(path); err == nil {
		t.Error("it is one")
	}
}
