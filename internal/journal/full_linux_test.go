package journal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/internal/statedir"
	"github.com/toold/toold/message"
)

// smallDisk is a directory on a file system of its own.
func smallDisk(t *testing.T, size string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=700,size="+size); err != nil {
		t.Skipf("cannot mount a small file system (%v): run as root to test a full disk", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestAFullDiskIsAnErrorAndNotALoss(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t, "2m")
	j := must.Get(journal.Open(t.Context(), dir, journal.Self()))(t)
	defer j.Close()
	k := receive(t, j, call("intended"))

	ballast := filepath.Join(dir, "ballast")
	_ = os.WriteFile(ballast, make([]byte, 4<<20), 0o600) // as much as there is room for
	big := call("big")
	big.Message = []byte(`{"text":"` + strings.Repeat("x", 1<<20) + `"}`)
	if _, _, err := j.Receive(t.Context(), big); err == nil {
		t.Error("a call was recorded on a full disk")
	}
	refused := 0
	for i := 0; refused == 0 && i < 10_000; i++ { // until the room behind the last record is used up too
		if _, _, err := j.Receive(t.Context(), call(fmt.Sprint(i))); err != nil {
			refused++
		}
	}
	explained := allow
	explained.Reason = strings.Repeat("x", 1<<20)
	if err := j.Intend(k, explained); err == nil || refused == 0 {
		t.Errorf("a full disk went unnoticed: intend %v, %d calls refused", err, refused)
	}

	must.Do(t, os.Remove(ballast))
	must.Do(t, j.Intend(k, allow))
	verify(t, dir)
	if rec, err := j.FindAny(t.Context(), "intended"); err != nil || rec.State != journal.Intended {
		t.Errorf("record is %+v, %v", rec, err)
	}
}

// The return of a call that runs is recorded on a disk on which nothing else is, and no new
// call takes its room.
func TestAReturnHasRoomOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t, "4m")
	j, err := journal.Open(t.Context(), dir, journal.Self())
	must.Do(t, err)
	defer j.Close()
	var running []journal.Key
	for i := range 3 {
		rec, _, err := j.Begin(t.Context(), call(fmt.Sprint("running-", i)), allow)
		must.Do(t, err)
		running = append(running, rec.Key)
	}
	fill := filepath.Join(dir, "fill")
	_ = os.WriteFile(fill, make([]byte, 8<<20), 0o600) // as much as there is room for
	for i := 0; ; i++ {                                // until the room in the last block is used up too
		if _, _, err := j.Begin(t.Context(), call(fmt.Sprint("new-", i)), allow); err != nil {
			break
		}
	}
	body := fmt.Appendf(nil, `{"result":"%s"}`, strings.Repeat("x", 200_000))
	for _, k := range running {
		if _, err := j.Finish(k, journal.Outcome{Status: "success"}, func(seq int64) (string, []byte, error) {
			return fmt.Sprint("message-", seq), body, nil
		}); err != nil {
			t.Errorf("a return on a full disk: %v", err)
		}
		if _, _, err := j.Begin(t.Context(), call("new"), allow); err == nil || !strings.Contains(err.Error(), "make room on the disk") {
			t.Errorf("a new call took its room: %v", err)
		}
	}
	must.Do(t, os.Remove(fill))
	_, _, err = j.Begin(t.Context(), call("later"), allow)
	must.Do(t, err)
	if info, err := os.Stat(filepath.Join(dir, "journal", "ballast")); err != nil || info.Size() != 1<<20 {
		t.Errorf("the ballast is %v, %v", info, err)
	}
	verify(t, dir)
}

// A daemon that starts on a full disk answers the calls of its predecessor.
func TestCallsOfADeadDaemonAreTakenOverOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, started := range []bool{false, true} {
		dir := smallDisk(t, "4m")
		j, err := journal.Open(t.Context(), dir, "1 0 before")
		must.Do(t, err)
		_, _, err = j.Begin(t.Context(), call("open"), allow)
		must.Do(t, err)
		must.Do(t, j.Close())
		if started { // before the disk is full
			j = open(t, dir)
		}
		_ = os.WriteFile(filepath.Join(dir, "fill"), make([]byte, 8<<20), 0o600) // as much as there is room for
		if !started {
			j = open(t, dir)
		}
		for i := 0; ; i++ { // until the room in the last block is used up too
			if _, err := j.Append(journal.Message{Origin: message.Origin{ID: fmt.Sprint(i)}, Direction: journal.Out, Body: []byte(`{}`)}); err != nil {
				break
			}
		}
		takesOver(t, j)
	}
}

// takesOver answers the call of a dead daemon, and takes no new one.
func takesOver(t *testing.T, j *journal.Journal) {
	t.Helper()
	list, err := j.Unfinished(nil)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d calls were left, %v", len(list), err)
	}
	if _, _, err := j.Begin(t.Context(), call("new"), allow); err == nil {
		t.Error("a new call took their room")
	}
	must.Get(j.Finish(list[0].Key, journal.Outcome{Status: "error"}, func(seq int64) (string, []byte, error) {
		return fmt.Sprint("message-", seq), []byte(`{}`), nil
	}))(t)
}

// The state directory may be on a read-only file system, and the journal is read nevertheless.
func TestAReadOnlyJournalIsRead(t *testing.T) {
	t.Parallel()
	state := filepath.Join(smallDisk(t, "8m"), "state") // the note is beside it
	j := must.Get(journal.Open(t.Context(), state, journal.Self()))(t)
	receive(t, j, call("recorded"))
	must.Do(t, j.Close())

	must.Do(t, syscall.Mount("", filepath.Dir(state), "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	if _, done, err := journal.Import(t.Context(), state, false); err != nil || done {
		t.Errorf("Import: %v, %v", done, err)
	}
	verify(t, state)
	j = must.Get(journal.Open(t.Context(), state, journal.Self()))(t)
	if rec, err := j.FindAny(t.Context(), "recorded"); err != nil || rec.ID != "recorded" {
		t.Errorf("record is %+v, %v", rec, err)
	}
	if _, _, err := j.Receive(t.Context(), call("new")); !errors.Is(err, syscall.EROFS) {
		t.Errorf("a call on a read-only file system: %v", err)
	}
	must.Do(t, j.Close())
	if _, err := statedir.Serve(state); !errors.Is(err, syscall.EROFS) {
		t.Errorf("a daemon on a read-only file system: %v", err)
	}
}
