package executor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/launch"
)

func (c Command) check() error {
	if strings.IndexByte(c.Script, 0) >= 0 {
		return errors.New("cannot run the script: it contains a NUL byte")
	}
	if !filepath.IsAbs(c.Dir) {
		return &launch.DirError{Dir: c.Dir, Err: errors.New("the path is not absolute")}
	}
	switch st, err := os.Stat(c.Dir); {
	case err != nil:
		return &launch.DirError{Dir: c.Dir, Err: paths.Bare(err)}
	case !st.IsDir():
		return &launch.DirError{Dir: c.Dir, Err: syscall.ENOTDIR}
	}
	return nil
}

func (c Command) starting(identity string) error {
	if c.Starting == nil {
		return nil
	}
	return c.Starting(identity)
}

func (c Command) neverRan() Exit {
	return Exit{
		Reason: Stopped, Code: 128 + int(syscall.SIGTERM), Signal: "SIGTERM",
		Sandbox: sandbox.Report{Profile: c.Sandbox.Mode.String(), Enforced: []string{}, Tier: "none"},
	}
}

// endOf returns the exit code of a command, and the signal that killed it or "". A command whose status is unknown
// counts as killed.
func endOf(status syscall.WaitStatus, known bool) (code int, signal string) {
	by := syscall.SIGKILL
	if known {
		if !status.Signaled() {
			return status.ExitStatus(), ""
		}
		by = status.Signal()
	}
	return 128 + int(by), unix.SignalName(by)
}

// signalOf returns the signal with a name in upper or lower case, with or without SIG; 0 = none has it.
func signalOf(name string) syscall.Signal {
	return unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(name), "SIG"))
}

const defaultGrace = 2 * time.Second

var bashArguments = []string{"--noprofile", "--norc", "-c"}

// findShell searches directories that only root can write, not PATH.
func findShell() (string, error) {
	for _, path := range []string{"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"} {
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", errors.New("cannot find bash in /bin, /usr/bin or /usr/local/bin: install it")
}
