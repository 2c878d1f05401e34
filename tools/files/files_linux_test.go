//go:build unix

package files

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/toold/toold/sandbox"
)

func TestAPipeIsRefusedAtOnceByEveryTool(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	if err := syscall.Mkfifo(w.root+"/pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	w.refused("read_file", args{"file_path": "pipe"}, "named pipe")
	w.refused("write_file", args{"file_path": "pipe", "content": "x"}, "named pipe")
	w.refused("edit_file", args{"file_path": "pipe", "old_string": "x", "new_string": "y"}, "named pipe")
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
// must not make that program busy.
func TestAProgramCanBeRunRightAfterItWasWritten(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			name := fmt.Sprintf("program%d", i)
			path := filepath.Join(w.root, name)
			w.put(name, "#!/bin/sh\n")
			if err := os.Chmod(path, 0o755); err != nil {
				t.Error(err)
			}
			for n := range 25 {
				w.run("write_file", args{"file_path": name, "content": fmt.Sprintf("#!/bin/sh\nexit %d\n", n)})
				err := exec.CommandContext(t.Context(), path).Run()
				exit := (*exec.ExitError)(nil)
				if n > 0 && (!errors.As(err, &exit) || exit.ExitCode() != n) {
					t.Errorf("run %d: %v", n, err)
				}
			}
		})
	}
	all.Wait()
}
