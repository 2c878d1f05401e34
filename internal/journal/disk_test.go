package journal

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toold/toold/internal/must"
)

func begin(t *testing.T, j *Journal, id string) (Record, error) {
	rec, _, err := j.Begin(t.Context(), Call{Client: "agent", ID: id, MessageType: "approval_request_message", Message: []byte(`{}`)}, Decision{Action: "allow"})
	return rec, err
}

func finished(j *Journal, k Key) error {
	_, err := j.Finish(k, Outcome{Status: "success"}, func(seq int64) (string, []byte, error) {
		return fmt.Sprint("message-", seq), []byte(`{}`), nil
	})
	return err
}

func TestAnIntentIsOnTheDiskAtOnceAndAReturnSoon(t *testing.T) {
	t.Parallel()
	j, disk := openFaulty(t, t.TempDir())
	rec := must.Get(begin(t, j, "c1"))(t)
	if synced, writes := disk.synced.Load(), disk.writes.Load(); synced != writes {
		t.Errorf("%d of %d writes are on the disk", synced, writes)
	}
	must.Do(t, finished(j, rec.Key))
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for disk.synced.Load() != disk.writes.Load() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("the return is not brought to the disk")
		}
	}
}

func TestIntentsOfManyAreAllOnTheDisk(t *testing.T) {
	t.Parallel()
	j, disk := openFaulty(t, t.TempDir())
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 10 {
				before := disk.writes.Load()
				if _, err := begin(t, j, fmt.Sprint(g, "-", i)); err != nil {
					t.Error(err)
				}
				if synced := disk.synced.Load(); synced <= before {
					t.Errorf("%d writes are on the disk, and there were %d before this one", synced, before)
				}
			}
		})
	}
	all.Wait()
}

// A disk that has failed once may have lost what it says it has.
func TestNothingIsBegunOnADiskThatHasFailed(t *testing.T) {
	t.Parallel()
	j, disk := openFaulty(t, t.TempDir())
	ran := must.Get(begin(t, j, "ran"))(t)
	disk.broken.Store(true)
	if _, err := begin(t, j, "lost"); err == nil {
		t.Error("what could not be synced was begun")
	}
	disk.broken.Store(false)
	if _, err := begin(t, j, "later"); err == nil {
		t.Error("a call was begun after the disk had failed")
	}
	if err := finished(j, ran.Key); err != nil {
		t.Errorf("the return of a call that ran: %v", err)
	}
}

// What could not be written has not happened: the id may be sent again, and the numbers are
// used by what comes next.
func TestWhatCannotBeWrittenHasNotHappened(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, disk := openFaulty(t, dir)
	must.Get(begin(t, j, "first"))(t)
	disk.full.Store(true)
	for range 3 {
		if _, err := begin(t, j, "second"); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("on a full disk: %v", err)
		}
	}
	if rec, fresh, err := j.Receive(t.Context(), Call{Client: "agent", ID: "first"}); err != nil || fresh || rec.Key != 1 {
		t.Errorf("a repeat on a full disk: fresh %v, %+v, %v", fresh, rec, err)
	}
	disk.full.Store(false)
	if rec, err := begin(t, j, "second"); err != nil || rec.Key != 2 || j.Last() != 2 {
		t.Errorf("when there is room again: call %d, message %d, %v", rec.Key, j.Last(), err)
	}
	next, _ := openFaulty(t, dir)
	if calls, err := next.Calls(t.Context(), 0, 10); err != nil || len(calls) != 2 {
		t.Errorf("%d calls, %v", len(calls), err)
	}
}

func TestACallIsBegunByOneOfSeveralProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var mu sync.Mutex
	begun := map[string]int{}
	var all sync.WaitGroup
	handles := make([]*Journal, 3)
	for p := range handles {
		handles[p], _ = openFaulty(t, dir)
		for range 4 {
			all.Go(func() {
				for i := range 30 {
					id := fmt.Sprint(i)
					_, fresh, err := handles[p].Begin(t.Context(), Call{Client: "agent", ID: id, Message: []byte(`{}`)}, Decision{Action: "allow"})
					if err != nil {
						t.Error(err)
					}
					if mu.Lock(); fresh {
						begun[id]++
					}
					mu.Unlock()
				}
			})
		}
	}
	all.Wait()
	if len(begun) != 30 {
		t.Errorf("%d calls were begun", len(begun))
	}
	for id, n := range begun {
		if n != 1 {
			t.Errorf("call %s was begun %d times", id, n)
		}
	}
	sound(t, dir)
}

// Those that one write was to record find that the first has made room.
func TestReturnsThatFailTogetherOnAFullDiskAreAllRecorded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, disk := openFaulty(t, dir)
	var keys []Key
	for i := range 3 {
		rec := must.Get(begin(t, j, fmt.Sprint(i)))(t)
		keys = append(keys, rec.Key)
	}
	j.write.turn <- struct{}{} // so that they wait for one write
	disk.ballast = j.ballast.path
	var all sync.WaitGroup
	for _, k := range keys {
		all.Go(func() {
			if err := finished(j, k); err != nil {
				t.Errorf("a return on a full disk: %v", err)
			}
		})
	}
	for queued := 0; queued < len(keys); {
		runtime.Gosched()
		j.write.mu.Lock()
		queued = len(j.write.queue)
		j.write.mu.Unlock()
	}
	<-j.write.turn
	all.Wait()
}
