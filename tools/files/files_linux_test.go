package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/tools"
)

func TestAPipeIsRefusedAtOnceByEveryTool(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	must.Do(t, syscall.Mkfifo(w.root+"/pipe", 0o600))
	w.refused("read_file", args{"file_path": "pipe"}, "named pipe")
	w.refused("write_file", args{"file_path": "pipe", "content": "x"}, "named pipe")
	w.refused("edit_file", args{"file_path": "pipe", "old_string": "x", "new_string": "y"}, "named pipe")
	w.refused("grep", args{"path": "pipe", "pattern": "x"}, "named pipe")
	w.refused("grep", args{"path": "pipe/below", "pattern": "x"}, "not a directory")
	w.refused("glob", args{"path": "pipe", "pattern": "*"}, "not a directory")
	full := newWorkspace(t, func(o *Options) { o.Profile.Mode = sandbox.FullAccess })
	full.refused("read_file", args{"file_path": "/dev/zero"}, "a device")
	full.refused("write_file", args{"file_path": "/dev/null", "content": "x"}, "a device")
}

func TestOtherHardLinksKeepTheOldContent(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	w.put("f", "old\n")
	if err := os.Link(w.root+"/f", w.root+"/other"); err != nil {
		t.Skipf("no hard links here: %v", err)
	}
	w.run("write_file", args{"file_path": "f", "content": "new\n"})
	if w.content("f") != "new\n" || w.content("other") != "old\n" {
		t.Errorf("f %q, other %q", w.content("f"), w.content("other"))
	}
}

// See golang/go#22315: a process that is started while a program is written
// must not make that program busy. Half of the processes have namespaces of
// their own, for which the kernel's vfork is not used.
func TestAProgramCanBeRunRightAfterItWasWritten(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	long := strings.Repeat("#", 16<<10) // takes a while to write
	ctx, done := context.WithCancel(t.Context())
	var spawners, writers sync.WaitGroup
	for range 4 {
		spawners.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				cmd := exec.CommandContext(t.Context(), "/bin/true")
				if n%2 == 0 {
					cmd.SysProcAttr = ownNamespace()
				}
				if err := cmd.Run(); err != nil && !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.ENOSPC) {
					t.Errorf("spawning: %v", err)
				}
			}
		})
	}
	for i := range 4 {
		writers.Go(func() {
			name := fmt.Sprintf("program%d", i)
			w.put(name, "")
			if err := os.Chmod(filepath.Join(w.root, name), 0o755); err != nil {
				t.Error(err)
			}
			for n := range 25 {
				w.run("write_file", args{"file_path": name, "content": fmt.Sprintf("#!/bin/sh\nexit %d\n%s\n", n, long)})
				err := exec.CommandContext(t.Context(), filepath.Join(w.root, name)).Run()
				exit := (*exec.ExitError)(nil)
				if n > 0 && (!errors.As(err, &exit) || exit.ExitCode() != n) {
					t.Errorf("run %d: %v", n, err)
				}
			}
		})
	}
	writers.Wait()
	done()
	spawners.Wait()
}

func ownNamespace() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
}

func TestTheReturnTellsWhatHeldTheCall(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, func(o *Options) { o.Profile.Hide = []string{o.Workspace + "/hidden"} })
	full := newWorkspace(t, func(o *Options) { o.Profile.Mode = sandbox.FullAccess })
	for _, tc := range []struct {
		w          workspace
		tool, path string
		tier, last string
	}{
		{w, "write_file", "f", "A", "openat2"},
		{w, "read_file", "f", "A", "openat2"},
		{w, "read_file", "missing", "A", "openat2"},
		{w, "edit_file", "f", "A", "openat2"},
		{w, "read_file", "hidden/f", "path", "path-check"},
		{w, "write_file", "/etc/f", "path", "path-check"},
		{full, "write_file", "f", "none", ""},
		{full, "read_file", "f", "none", ""},
	} {
		a := map[string]args{
			"read_file":  {"file_path": tc.path},
			"write_file": {"file_path": tc.path, "content": "a"},
			"edit_file":  {"file_path": tc.path, "old_string": "a", "new_string": "b"},
		}[tc.tool]
		got := tc.w.must(tc.tool, a).Execute(t.Context(), tools.IO{}).Sandbox
		last := ""
		if n := len(got.Enforced); n > 0 {
			last = got.Enforced[n-1]
		}
		if got.Tier != tc.tier || last != tc.last || got.Network != (tc.tier == "none") {
			t.Errorf("%s %s: %+v", tc.tool, tc.path, got)
		}
	}
}
