package chain_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/must"
)

const firstSegment = "00000001.log"

// A record takes the place of zeros: the file becomes no larger. They go when the log is closed.
func TestRecordsAreWrittenOverZeros(t *testing.T) {
	t.Parallel()
	s := newSite()
	must.Do(t, s.open())
	must.Do(t, s.log.Extend())
	c := s.dir.names[firstSegment]
	size := len(c.now)
	for i := range 3 {
		must.Do(t, s.add(fmt.Sprint(i)))
		must.Do(t, s.log.Extend())
		must.Do(t, s.sync())
		if len(c.now) != size || len(c.onDisk) != size {
			t.Errorf("the file has %d bytes, %d on the disk, %d before", len(c.now), len(c.onDisk), size)
		}
		s.verifies(t, "over zeros")
	}
	before := len(text(c.now))
	must.Do(t, s.log.Close())
	if len(c.now) != before || len(c.onDisk) != before {
		t.Errorf("%d bytes are left when it is closed, %d on the disk, %d of records", len(c.now), len(c.onDisk), before)
	}
	s.after(nil).check(t, "closed", false)
}

// A sync of records that are on the disk does nothing, unless zeros were written since.
func TestZerosAreSyncedAlone(t *testing.T) {
	t.Parallel()
	s, syncs := newSite(), 0
	o := s.options(func(chain.Record) error { return nil })
	o.Synced = func(time.Duration, error) { syncs++ }
	s.log = must.Get(chain.Open(o))(t)
	must.Do(t, s.add("one"))
	must.Do(t, s.sync())
	must.Do(t, s.sync())
	must.Do(t, s.log.Extend())
	must.Do(t, s.sync())
	if c := s.dir.names[firstSegment]; syncs != 2 || len(c.onDisk) != len(c.now) {
		t.Errorf("%d syncs; the file has %d bytes, %d on the disk", syncs, len(c.now), len(c.onDisk))
	}
}

// The power is cut while a record is written over zeros: a part of it is on the disk.
func TestARecordOverZerosThatIsTornAnywhereIsRemoved(t *testing.T) {
	t.Parallel()
	whole := newSite()
	must.Do(t, whole.open())
	must.Do(t, whole.log.Extend())
	must.Do(t, whole.add("one"))
	must.Do(t, whole.sync())
	before := len(text(whole.dir.names[firstSegment].now))
	note := slices.Clone(whole.notes.names["head"].now)
	must.Do(t, whole.add("two"))
	must.Do(t, whole.sync())
	after := whole.dir.names[firstSegment].now
	end := len(text(after))
	for at := before; at <= end; at++ {
		for name, lost := range map[string][2]int{"its end": {at, end}, "its beginning": {before, at}} {
			for _, noted := range []bool{false, true} {
				s := whole.after(rand.New(rand.NewPCG(1, 1)))
				torn := slices.Clone(after)
				clear(torn[lost[0]:lost[1]])
				s.dir.names[firstSegment].now = torn
				if !noted {
					s.notes.names["head"] = &content{now: note}
				}
				err := s.open()
				var damage *chain.DamageError
				switch isWhole := slices.Equal(torn, after); {
				case isWhole && (err != nil || len(s.seen) != 2):
					t.Errorf("whole: %v, %q", err, s.seen)
				case !isWhole && noted && (!errors.As(err, &damage) || damage.Mark.Number != 3):
					t.Errorf("without %s, %d of %d, behind the note: %v", name, at, end, err)
				case !isWhole && !noted && (err != nil || len(s.seen) != 1 || s.cut(t) != int64(max(0, len(text(torn))-before))):
					t.Errorf("without %s, %d of %d: %v, %q", name, at, end, err, s.seen)
				}
			}
		}
	}
}

// A record may end with zeros, with others behind it or none.
func TestZerosOfARecordBelongToIt(t *testing.T) {
	t.Parallel()
	for _, extended := range []bool{false, true} {
		s := newSite()
		must.Do(t, s.open())
		if extended {
			must.Do(t, s.log.Extend())
		}
		must.Do(t, s.add("one"))
		must.Do(t, s.add(strings.Repeat("\x00", 70)))
		must.Do(t, s.sync())
		s.verifies(t, "zeros")
		s.after(nil).check(t, "zeros", false)
	}
}

// What a full disk has no zeros for is for others, and records are written without them.
func TestAFullDiskKeepsItsRoom(t *testing.T) {
	t.Parallel()
	s := newSite()
	must.Do(t, s.open())
	must.Do(t, s.add("one"))
	c := s.dir.names[firstSegment]
	size := len(c.now)
	for n := 1; ; n++ {
		s.dir.failing(n, 1, syscall.ENOSPC)
		err := s.log.Extend()
		if s.dir.at = 0; err == nil {
			break
		}
		if len(c.now) != size {
			t.Errorf("call %d fails, and %d bytes are left, %d before", n, len(c.now), size)
		}
	}
	must.Do(t, s.add("two"))
	must.Do(t, s.sync())
	s.after(nil).check(t, "a full disk", false)
}
