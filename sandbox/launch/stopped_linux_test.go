package launch

import (
	"context"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox/internal/helper"
)

// TestAStoppedHelperHoldsUpNobody asks a helper that somebody has stopped more often
// than its socket has room for.
func TestAStoppedHelperHoldsUpNobody(t *testing.T) {
	t.Parallel()
	streams := NewStreams(t)
	p := &Process{
		exited: make(chan struct{}), alone: make(chan struct{}), gone: make(chan struct{}),
		answers: make(chan helper.Event, 1),
	}
	spec := helper.Spec{Dir: "/", Argv: []string{"/bin/bash", "-c", "exec sleep 1000"}, Env: []string{"PATH=" + os.Getenv("PATH")}}
	must.Do(t, p.launch(Command{Stdin: streams.Null, Stdout: streams.Out, Stderr: streams.Out}, spec, nil))
	must.Do(t, p.hear(t.Context()))
	must.Do(t, syscall.Kill(p.PID(), syscall.SIGSTOP))
	var hung atomic.Bool
	guard := time.AfterFunc(2*time.Minute, func() { hung.Store(true); p.destroy() })
	defer guard.Stop()
	ended, end := context.WithCancel(t.Context())
	end()
	for range 1000 {
		p.Waiting(ended)
	}
	p.SignalAll(syscall.SIGTERM)
	p.Kill()
	p.End()
	if hung.Load() {
		t.Error("who asks a stopped helper waits for it")
	}
}
