package launch_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/fileworker"
	"github.com/toold/toold/sandbox/launch"
)

func TestFilesAreOpenedInTierBAsCommandsRunThere(t *testing.T) {
	if !maskedProc(t) {
		return
	}
	ws := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	p, _, err := launch.Choose(t.Context(), sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: ws}, sandbox.TierB)
	if err != nil {
		t.Fatal(err)
	}
	var files fileworker.Pool
	defer files.Close()
	path := filepath.Join(ws, "f")
	must.Do(t, files.Replace(t.Context(), p, path, fileworker.Replacement{Data: []byte("content")}))
	f, report, err := files.Open(t.Context(), p, path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if b, err := io.ReadAll(f); err != nil || string(b) != "content" {
		t.Errorf("it holds %q, %v", b, err)
	}
	if report.Tier != "B" || report.Degraded == "" {
		t.Errorf("report %+v", report)
	}
	outside := filepath.Join(filepath.Dir(ws), "outside")
	if err := files.Replace(t.Context(), p, outside, fileworker.Replacement{Data: []byte("x")}); err == nil {
		t.Error("written outside of the workspace")
	}
	if _, err := os.Lstat(outside); err == nil {
		t.Error("it is there")
	}
	// Commands see the worker among the machine's processes, and can do nothing to it.
	out, _ := runTier(t, p, `exec 2>/dev/null; for try in "kill -9 $V" "renice 19 -p $V" "prlimit --nofile=1 --pid $V" "cat $OF/environ" "readlink $OF/fd/3" "ls $OF/root/" "head -c 1 $OF/mem"; do
$try </dev/null >/dev/null && echo "$try"; done; tr '\0' ' ' <$OF/cmdline | grep -o toold-file-worker`, "OF=/proc/"+workerPID(t), "V="+workerPID(t))
	if out != "toold-file-worker\n" {
		t.Errorf("a command could: %q", out)
	}
}

// workerPID finds the only worker of the container.
func workerPID(t *testing.T) string {
	t.Helper()
	processes := must.Get(filepath.Glob("/proc/[0-9]*/cmdline"))(t)
	for _, p := range processes {
		if b, err := os.ReadFile(p); err == nil && strings.Contains(string(b), "\x00toold-file-worker\x00") {
			return filepath.Base(filepath.Dir(p))
		}
	}
	t.Fatal("there is no worker")
	return ""
}
