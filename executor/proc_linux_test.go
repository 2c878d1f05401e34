package executor_test

import (
	"os"
	"testing"

	"github.com/toold/toold/executor"
)

func TestTheMachinesPartOfProcCannotBeWritten(t *testing.T) {
	t.Parallel()
	requireProgram(t, "python3")
	expect(t, in(t, executor.Off, `python3 -c '
import os
for e in os.scandir("/proc"):
    info = e.stat(follow_symlinks=False)
    open = e.is_dir(follow_symlinks=False) or e.is_file(follow_symlinks=False) and info.st_mode & 0o222
    if open and not e.name.isdecimal() and not os.statvfs(e.path).f_flag & os.ST_RDONLY:
        print(e.name)'`), result{})
}

// Root could change the machine's firewall there.
func TestNothingInProcIsWrittenByRootWithTheMachinesNetwork(t *testing.T) {
	t.Parallel()
	c := in(t, executor.Off, "(echo sh >>/proc/self/comm) 2>/dev/null || echo refused")
	expect(t, c, result{})
	want := result{}
	if c.Sandbox.Network = true; os.Getuid() == 0 {
		want.Out = "refused\n"
	}
	expect(t, c, want)
}
