package launch_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/launch"
)

// maskedProc runs the calling test again in a container of its own: with a /proc
// parts of which are masked, as default containers have it. It reports whether
// this is that second run.
func maskedProc(t *testing.T) bool {
	t.Helper()
	if os.Getenv("TOOLD_TEST_MASKED") != "" {
		return true
	}
	script := `mount -t proc proc /proc && mount --bind /dev/null /proc/version && TOOLD_TEST_MASKED=1 exec "$0" -test.run="^$1\$" -test.v`
	c := exec.CommandContext(t.Context(), "/bin/sh", "-c", script, "/proc/self/exe", t.Name())
	self := must.Get(os.Executable())(t)
	c.Args[3] = self
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := c.CombinedOutput()
	if err != nil && !bytes.Contains(out, []byte("=== RUN")) {
		t.Skipf("no container can be made here: %v: %s", err, out)
	}
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	return false
}

func TestTierBHoldsWhereProcIsMasked(t *testing.T) {
	if !maskedProc(t) {
		return
	}
	ws := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	p := sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: ws, Limits: sandbox.Limits{Processes: 100, MemoryBytes: 1 << 30}}
	var failed *sandbox.StageError
	if _, _, err := launch.Choose(t.Context(), p, sandbox.TierA); !errors.As(err, &failed) || failed.Stage != "mount /proc" || !strings.Contains(err.Error(), "sandbox.allow_degraded: tier-b") {
		t.Fatalf("with tier A as the lowest: %v", err)
	}
	p, report, err := launch.Choose(t.Context(), p, sandbox.TierB)
	if err != nil || report.Tier != "B" || !strings.Contains(report.Degraded, "systempaths=unconfined") {
		t.Fatalf("%+v, %v", report, err)
	}
	// Somebody else's process of the same user must be neither signalled, traced,
	// changed nor read.
	victim := exec.CommandContext(t.Context(), "sleep", "600")
	must.Do(t, victim.Start())
	of := "/proc/" + strconv.Itoa(victim.Process.Pid)
	before := told(t, of)
	out, left := runTier(t, p, `exec 2>/dev/null; for try in "kill -9 $V" "kill -9 -1" "renice 19 -p $V" "renice 19 -u 0" "ionice -c 3 -u 0" "prlimit --nofile=1 --pid $V" "taskset -p 1 $V" \
"cat $OF/environ" "readlink $OF/fd/0" "ls $OF/root/" "tee $OF/oom_score_adj" "touch /etc/x"; do $try </dev/null >/dev/null && echo "$try"; done
trap 'echo heard' TERM; kill $$; (setsid sleep 601 </dev/null >/dev/null & ); echo in >file; cat file`, "OF="+of, "V="+strconv.Itoa(victim.Process.Pid))
	if out != "kill -9 -1\nheard\nin\n" { // it reaches nobody else
		t.Errorf("the call printed %q", out)
	}
	if len(left) != 1 { // whatever it is called that early
		t.Errorf("left: %+v", left)
	}
	if after := told(t, of); after != before {
		t.Errorf("the other process was %q and is %q", before, after)
	}
	if err := victim.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = victim.Wait()
}

// told is what the kernel tells of a process that others could change.
func told(t *testing.T, of string) string {
	t.Helper()
	var all string
	for _, name := range []string{"limits", "oom_score_adj", "status", "comm"} {
		b := must.Get(os.ReadFile(filepath.Join(of, name)))(t)
		for line := range strings.Lines(string(b)) {
			if !strings.Contains(line, "ctxt_switches") && !strings.HasPrefix(line, "State:") && !strings.HasPrefix(line, "Vm") && !strings.HasPrefix(line, "Rss") &&
				!strings.HasPrefix(line, "SigQ") { // which counts those of the user's other processes too
				all += line
			}
		}
	}
	return all
}

// runTier runs a script under a profile, and returns what it printed and left.
func runTier(t *testing.T, p sandbox.Profile, script string, env ...string) (string, []launch.Member) {
	t.Helper()
	return begin(t, p, script, env...).end(t)
}
