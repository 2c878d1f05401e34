package journal

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/must"
)

// Calls that wait for the lock of another process wait for it together.
func TestAllWritesWaitOnceForALock(t *testing.T) {
	t.Parallel()
	j, _ := openFaulty(t, t.TempDir())
	j.WaitForLock(20 * time.Millisecond)
	release := lock(t, j)
	const n = 8
	failed := make(chan error, n)
	j.write.turn <- struct{}{}
	for i := range n {
		go func() {
			_, _, err := j.Receive(context.Background(), Call{
				Client: "agent", ID: fmt.Sprint(i), Dialect: "letta_api", Tool: "Bash", Canonical: "bash", Arguments: []byte("{}"), ArgsHash: "h",
				MessageType: "approval_request_message", Message: []byte("{}"),
			})
			failed <- err
		}()
	}
	for queued := 0; queued < n; {
		j.write.mu.Lock()
		queued = len(j.write.queue)
		j.write.mu.Unlock()
	}
	<-j.write.turn
	for i := range n {
		if err := <-failed; err == nil {
			t.Error("a call waited for the lock after another had given up")
		}
		if i == 0 {
			release()
		}
	}
}

// lock takes the lock of a journal as another process would.
func lock(t *testing.T, j *Journal) (release func()) {
	t.Helper()
	dir := must.Get(chain.Directory(j.files.path))(t)
	unlock := must.Get(dir.Lock(time.Minute))(t)
	return func() { unlock(); dir.Close() }
}

// What another process has recorded before may be missing in what a query would find.
func TestAQueryDoesNotGuessWhatAnotherProcessWrites(t *testing.T) {
	t.Parallel()
	j, _ := openFaulty(t, t.TempDir())
	release := lock(t, j)
	if _, err := j.Latest(t.Context(), 0, 10); !errors.Is(err, ErrBusy) {
		t.Errorf("while another process writes: %v", err)
	}
	release()
	if _, err := j.Latest(t.Context(), 0, 10); err != nil {
		t.Error(err)
	}
}
