package journal_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/must"
)

// childDir names the journal's directory for this binary when it plays a
// second daemon.
const childDir = "JOURNAL_TEST_CHILD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := child(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// child records calls until it is killed, and prints each id once the journal
// has said that it is recorded: one finished call, one that was intended and
// one that was only received, in turns.
func child(dir string) error {
	ctx := context.Background()
	j, err := journal.Open(ctx, dir, journal.Self())
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		if err := cycle(ctx, j, call(fmt.Sprintf("finished-%d", i))); err != nil {
			return err
		}
		fmt.Printf("finished-%d\n", i)
		rec, _, err := j.Receive(ctx, call(fmt.Sprintf("intended-%d", i)))
		if err != nil {
			return err
		}
		if err := j.Intend(rec.Key, allow); err != nil {
			return err
		}
		fmt.Printf("intended-%d\n", i)
		if _, _, err := j.Receive(ctx, call(fmt.Sprintf("received-%d", i))); err != nil {
			return err
		}
		fmt.Printf("received-%d\n", i)
	}
}

// startChild starts a second daemon on dir. The returned function kills it,
// waits for it and returns every id it printed.
func startChild(t *testing.T, dir string, lines int, wrap ...string) (kill func() []string) {
	t.Helper()
	args := append(wrap, os.Args[0])
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.Stderr = os.Stderr
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	var ids []string
	in := bufio.NewScanner(out)
	for len(ids) < lines && in.Scan() {
		ids = append(ids, in.Text())
	}
	return func() []string {
		must.Do(t, cmd.Process.Kill())
		for in.Scan() {
			ids = append(ids, in.Text())
		}
		if err := cmd.Wait(); err == nil {
			t.Error("the child ended by itself")
		}
		return ids
	}
}

func TestWhatWasRecordedOutlivesAKilledDaemon(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kill := startChild(t, dir, 30)
	j := open(t, dir) // while the other daemon lives
	if left, err := j.Unfinished(nil); err != nil || len(left) != 0 {
		t.Errorf("calls of a living daemon were taken: %d, %v", len(left), err)
	}
	ids := kill()
	if len(ids) < 30 {
		t.Fatalf("the child recorded only %d calls", len(ids))
	}
	left := must.Get(j.Unfinished(nil))(t)
	open := map[string]journal.Record{}
	for _, r := range left {
		open[r.ID] = r
	}
	for _, id := range ids {
		rec := must.Get(j.FindAny(t.Context(), id))(t)
		kind, _, _ := strings.Cut(id, "-")
		_, unfinished := open[id]
		var ok bool
		switch kind {
		case "finished":
			// That it was delivered may be written late.
			ok = !rec.ReturnedAt.IsZero() && len(rec.Result) > 0 && !unfinished
		case "intended":
			ok = rec.State == journal.Intended && rec.Decision == allow && unfinished && !open[id].IntendedAt.IsZero()
		case "received":
			ok = rec.State == journal.Received && unfinished && open[id].IntendedAt.IsZero()
		}
		if !ok {
			t.Errorf("call %s was found as %+v, unfinished %v", id, rec, unfinished)
		}
	}
	verify(t, dir)
	if again, err := j.Unfinished(nil); err != nil || len(again) != 0 {
		t.Errorf("calls were taken twice: %d, %v", len(again), err)
	}
	for _, r := range left {
		if _, err := finish(j, r.Key, journal.Outcome{Status: "error", ErrorType: "unknown_after_crash"}); err != nil {
			t.Error(err)
		}
	}
}

func TestTwoDaemonsShareAJournal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kill := startChild(t, dir, 1)
	j := open(t, dir)
	for i := range 50 {
		must.Do(t, cycle(t.Context(), j, call(fmt.Sprintf("ours-%d", i))))
	}
	kill()
	verify(t, dir)
}

// TestADaemonOfAnotherPidNamespaceIsAlive: its calls are nobody else's, although /proc
// does not show it.
func TestADaemonOfAnotherPidNamespaceIsAlive(t *testing.T) {
	t.Parallel()
	wrap := []string{"unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"}
	if err := exec.Command(wrap[0], append(wrap[1:], "true")...).Run(); err != nil {
		t.Skipf("cannot make a pid namespace: %v", err)
	}
	dir := t.TempDir()
	kill := startChild(t, dir, 3, wrap...)
	j := open(t, dir)
	if left, err := j.Unfinished(nil); err != nil || len(left) != 0 {
		t.Errorf("calls of a living daemon were taken: %d, %v", len(left), err)
	}
	kill()
	if left, err := j.Unfinished(nil); err != nil || len(left) == 0 {
		t.Errorf("calls of a dead daemon were not taken: %v", err)
	}
}
