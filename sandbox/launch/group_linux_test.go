package launch_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/cgroup"
	"github.com/toold/toold/sandbox/launch"
)

// grouped gives a profile control groups, or skips the test where there are none.
func grouped(t *testing.T, p sandbox.Profile) sandbox.Profile {
	t.Helper()
	groups, err := cgroup.Open()
	if err != nil {
		t.Skipf("no control groups for this test: %v", err)
	}
	t.Cleanup(groups.Close)
	p.Groups = groups
	return p
}

// begun is a call that was started by a test.
type begun struct {
	*launch.Process
	streams launch.Streams
}

// begin starts a script under a profile. Its end has to be called.
func begin(t *testing.T, p sandbox.Profile, script string, env ...string) begun {
	t.Helper()
	streams := launch.NewStreams(t)
	call := must.Get(launch.Start(t.Context(), launch.Command{
		Argv: []string{"/bin/bash", "-c", script}, Env: append(env, "PATH="+os.Getenv("PATH")), Dir: p.Workspace,
		Stdin: streams.Null, Stdout: streams.Out, Stderr: streams.Out, Profile: p,
	}))(t)
	return begun{call, streams}
}

// end waits for the script, ends the call, and returns what it printed and left.
func (c begun) end(t *testing.T) (string, []launch.Member) {
	t.Helper()
	<-c.Exited()
	left := c.End()
	return c.streams.Printed(t), left
}

func TestAControlGroupBoundsTheProcessesOfEveryMode(t *testing.T) {
	t.Parallel()
	for _, mode := range []sandbox.Mode{sandbox.ReadOnly, sandbox.WorkspaceWrite, sandbox.FullAccess} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			ws := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
			p := grouped(t, sandbox.Profile{Mode: mode, Workspace: ws, Limits: sandbox.Limits{Processes: 60}})
			c := begin(t, p, `sh -c 'while :; do sleep 600 & done' 2>/dev/null; echo full`)
			printed, left := c.end(t)
			if printed != "full\n" || c.Limit() != "processes" || len(left) < 10 || len(left) > 60 {
				t.Errorf("printed %q, met the limit %q, left %d processes", printed, c.Limit(), len(left))
			}
		})
	}
}

// Without a namespace of processes nothing but its control group knows a process
// that has left its session, its parent and its environment behind, once the helper
// is gone.
func TestAControlGroupEndsWhatAKilledHelperLeaves(t *testing.T) {
	t.Parallel()
	ws := t.TempDir()
	c := begin(t, grouped(t, sandbox.Profile{Mode: sandbox.FullAccess, Workspace: ws}),
		`mkfifo p; (setsid env -i bash -c 'echo $$ >p; exec sleep 600' & ); read pid <p; echo $pid >pid; kill -9 $PPID; sleep 600`)
	<-c.Exited()
	b := must.Get(os.ReadFile(filepath.Join(ws, "pid")))(t)
	c.end(t)
	if stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(b)) + "/stat"); err == nil && !strings.Contains(string(stat), ") Z ") {
		t.Errorf("the process lives: %s", stat)
	}
}
