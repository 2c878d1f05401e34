package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toold/toold/internal/must"
)

// Returns that fail together, of which one releases the ballast, are all recorded, also beyond a quota.
func TestReturnsThatFailTogetherHaveTheRoomOfTheBallast(t *testing.T) {
	t.Parallel()
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		dir := t.TempDir()
		j, disk := openFaulty(t, dir)
		var running []Key
		for i := range 3 {
			rec := must.Get(begin(t, j, fmt.Sprint(i)))(t)
			running = append(running, rec.Key)
		}
		noRoom := func() error {
			if _, err := os.Lstat(filepath.Join(dir, "journal", ballastName)); err == nil {
				return full
			}
			return nil
		}
		disk.noRoom.Store(&noRoom)
		j.write.turn <- struct{}{}
		var all sync.WaitGroup
		for _, k := range running {
			all.Go(func() {
				if err := finished(j, k); err != nil {
					t.Errorf("%v: %v", full, err)
				}
			})
		}
		for queued := 0; queued < len(running); {
			runtime.Gosched()
			j.write.mu.Lock()
			queued = len(j.write.queue)
			j.write.mu.Unlock()
		}
		<-j.write.turn
		all.Wait()
		disk.noRoom.Store(nil)
	}
}

// A call that begins meanwhile does not take the room that a return has made for itself.
func TestAReturnKeepsTheRoomThatItMadeForItself(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, disk := openFaulty(t, dir)
	rec := must.Get(begin(t, j, "running"))(t)
	var once sync.Once
	var all sync.WaitGroup
	noRoom := func() error {
		if _, err := os.Lstat(filepath.Join(dir, "journal", ballastName)); err != nil {
			return nil
		}
		once.Do(func() {
			all.Go(func() { _, _ = begin(t, j, "new") }) // refused, or begun after the return
			for queued := 0; queued == 0; {
				runtime.Gosched()
				j.write.mu.Lock()
				queued = len(j.write.queue)
				j.write.mu.Unlock()
			}
		})
		return syscall.ENOSPC
	}
	disk.noRoom.Store(&noRoom)
	if err := finished(j, rec.Key); err != nil {
		t.Errorf("the return is not recorded: %v", err)
	}
	all.Wait()
	disk.noRoom.Store(nil)
}

// No call begins without a ballast, whoever has removed it; a sparse file, as a restored backup has, is none.
func TestTheBallastIsMadeAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "journal", ballastName)
	j, _ := openFaulty(t, dir)
	is := func(when string) {
		info, err := os.Stat(path)
		if err != nil || info.Size() != ballastBytes || info.Sys().(*syscall.Stat_t).Blocks*512 < ballastBytes {
			t.Errorf("%s: the ballast is %+v, %v", when, info, err)
		}
	}
	must.Do(t, os.Remove(path)) // by another process
	must.Get(begin(t, j, "a"))(t)
	is("after a call")
	must.Do(t, errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "x"), 0o700))) // it cannot be made
	if _, err := begin(t, j, "b"); err == nil {
		t.Error("a call began without a ballast")
	}
	ready := func() error {
		j.write.health.looked = time.Time{}
		return j.Ready()
	}
	if err := ready(); err == nil {
		t.Error("it is ready for calls that it refuses")
	}
	must.Do(t, os.RemoveAll(path))
	must.Do(t, ready())
	is("when it can be made")
	must.Do(t, errors.Join(os.Truncate(path, 0), os.Truncate(path, ballastBytes)))
	openFaulty(t, dir)
	is("after a start")
}
