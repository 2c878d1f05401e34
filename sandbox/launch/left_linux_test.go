package launch

import (
	"os"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/internal/helper"
)

// A helper that says what its call has left, and is killed before it has ended that, leaves it to
// the daemon.
func TestWhatAHelperCouldNotEndIsEnded(t *testing.T) {
	t.Parallel()
	streams := NewStreams(t)
	p := must.Get(Start(t.Context(), Command{
		Argv: []string{"/bin/bash", "-c", "setsid sleep 1000 & until [ \"$(ps -o sid= $!)\" -eq $! ]; do :; done"}, Env: []string{"PATH=" + os.Getenv("PATH")}, Dir: "/",
		Stdin: streams.Null, Stdout: streams.Out, Stderr: streams.Out, Profile: sandbox.Profile{Mode: sandbox.FullAccess},
	}))(t)
	<-p.Exited()
	must.Do(t, p.cmd.Process.Kill())
	<-p.gone
	p.left = &helper.Event{Members: []helper.Member{{PID: 1}}} // as if that came before
	if left := p.End(); len(left) != 1 || p.Stuck() {
		t.Errorf("left %v, stuck: %v", left, p.Stuck())
	}
	if found := helper.Orphans(p.PID(), p.cookie); len(found) > 0 {
		t.Errorf("%v survived", found)
		for _, one := range found {
			_ = one.Signal(9)
		}
	}
}
