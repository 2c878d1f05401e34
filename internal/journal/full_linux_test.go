package journal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/internal/journal"
)

func TestAFullDiskIsAnErrorAndNotALoss(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m,mode=700"); err != nil {
		t.Skipf("cannot mount a small file system (%v): run as root to test a full disk", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	j, err := journal.Open(t.Context(), dir, journal.Self())
	must(t, err)
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
	for i := range 100 { // until the room in the last block is used up too
		if _, _, err := j.Receive(t.Context(), call(fmt.Sprint(i))); err != nil {
			refused++
		}
	}
	explained := allow
	explained.Reason = strings.Repeat("x", 1<<20)
	if err := j.Intend(t.Context(), k, explained); err == nil || refused == 0 {
		t.Errorf("a full disk went unnoticed: intend %v, %d calls refused", err, refused)
	}

	must(t, os.Remove(ballast))
	must(t, j.Intend(t.Context(), k, allow))
	verify(t, dir)
	if rec, err := j.Find(t.Context(), "agent", "intended"); err != nil || rec.State != journal.Running {
		t.Errorf("record is %+v, %v", rec, err)
	}
}
