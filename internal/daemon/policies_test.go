package daemon

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/zap"
)

// Calls may cause events without end in a workspace, beside its policy.
func TestAPolicyIsReadWhileItsFilesChangeWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reloads atomic.Int32
		changes := &fsnotify.Watcher{Events: make(chan fsnotify.Event), Errors: make(chan error)}
		p := &policies{
			files: &policyWatch{changes: changes, files: map[string]bool{"/w/.toold": true}}, log: zap.NewNop(),
			load: func() ([]string, error) { reloads.Add(1); return nil, nil },
		}
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		// Ends with ctx.
		go p.watch(ctx, nil, func() []string { return []string{"/w/.toold"} })
		event := func() { changes.Events <- fsnotify.Event{Name: "/w/.toold", Op: fsnotify.Create} }
		event()
		<-time.After(settleTime / 2)
		event()
		<-time.After(settleTime * 3 / 4)
		if n := reloads.Load(); n != 0 {
			t.Errorf("a file that is being written was read %d times", n)
		}
		<-time.After(settleTime)
		if n := reloads.Load(); n != 1 {
			t.Errorf("a file that was written was read %d times", n)
		}
		for range 1000 {
			changes.Errors <- fsnotify.ErrEventOverflow
			<-time.After(settleTime / 2)
		}
		if n := reloads.Load(); n < 5 {
			t.Errorf("in %v of events the policy was read %d times", 500*settleTime, n)
		}
	})
}
