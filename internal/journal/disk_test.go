package journal

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

func openHere(t *testing.T) *Journal {
	t.Helper()
	j, err := Open(t.Context(), t.TempDir(), Self())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() }) // some tests break it
	return j
}

// onDisk is how many transactions are on the disk, and how many there are.
func (d *disk) onDisk() (synced, committed int64) {
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	return d.synced, d.committed.Load()
}

// put has another file synced.
func (d *disk) put(log *os.File) (old *os.File) {
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	old, d.log = d.log, log
	return old
}

func begin(t *testing.T, j *Journal, id string) (Record, error) {
	rec, _, err := j.Begin(t.Context(), Call{Client: "agent", ID: id, MessageType: "approval_request_message", Message: []byte(`{}`)}, Decision{Action: "allow"})
	return rec, err
}

func finished(t *testing.T, j *Journal, k Key) error {
	_, err := j.Finish(t.Context(), k, Outcome{Status: "success"}, func(seq int64) (string, []byte, error) {
		return fmt.Sprint("message-", seq), []byte(`{}`), nil
	})
	return err
}

func TestAnIntentIsOnTheDiskAtOnceAndAReturnSoon(t *testing.T) {
	t.Parallel()
	j := openHere(t)
	rec, err := begin(t, j, "c1")
	if err != nil {
		t.Fatal(err)
	}
	if synced, committed := j.write.disk.onDisk(); synced != committed {
		t.Errorf("%d of %d transactions are on the disk", synced, committed)
	}
	if err := finished(t, j, rec.Key); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if synced, committed := j.write.disk.onDisk(); synced == committed {
			return
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("the return is not brought to the disk")
		}
	}
}

func TestIntentsOfManyAreAllOnTheDisk(t *testing.T) {
	t.Parallel()
	j := openHere(t)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 10 {
				before := j.write.disk.committed.Load()
				if _, err := begin(t, j, fmt.Sprint(g, "-", i)); err != nil {
					t.Error(err)
				}
				if synced, _ := j.write.disk.onDisk(); synced <= before {
					t.Errorf("%d transactions are on the disk, and there were %d before this one", synced, before)
				}
			}
		})
	}
	all.Wait()
}

// A disk that has failed once may have lost what it says it has.
func TestNothingIsBegunOnADiskThatHasFailed(t *testing.T) {
	t.Parallel()
	j := openHere(t)
	ran, err := begin(t, j, "ran")
	if err != nil {
		t.Fatal(err)
	}
	broken, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	if err := broken.Close(); err != nil {
		t.Fatal(err)
	}
	log := j.write.disk.put(broken)
	if _, err := begin(t, j, "lost"); err == nil {
		t.Error("what could not be synced was begun")
	}
	j.write.disk.put(log)
	if _, err := begin(t, j, "later"); err == nil {
		t.Error("a call was begun after the disk had failed")
	}
	if err := finished(t, j, ran.Key); err != nil {
		t.Errorf("the return of a call that ran: %v", err)
	}
}
