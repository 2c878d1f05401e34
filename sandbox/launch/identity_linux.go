package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox/internal/helper"
)

func identityOf(pid int) (string, error) {
	p, err := helper.Process(pid)
	if err != nil {
		return "", err
	}
	boot, err := bootID()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d:%d:%s", pid, p.Start, boot), nil
}

func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}

// KillIdentity kills the helper with this identity and its call, and reports whether it was alive. A helper whose
// daemon died ends by itself; this is a second safeguard.
func KillIdentity(identity string) (killed bool, err error) {
	pid, start, ok := parseIdentity(identity)
	if !ok {
		return false, fmt.Errorf("cannot kill %q: not the identity of a process", identity)
	}
	if now, err := identityOf(pid); err != nil || now != identity {
		return false, ignoreGone(err)
	}
	err = helper.Proc{PID: pid, Start: start}.Signal(unix.SIGKILL)
	killed = err == nil
	err = ignoreGone(err)
	if !sweepOrphans(pid, "") { // children of an unconfined helper outlive it
		err = errors.Join(err, fmt.Errorf("cannot end what the call has left: list it with ps -s %d, and end it", pid))
	}
	return killed, err
}

func parseIdentity(s string) (pid int, start uint64, ok bool) {
	f := strings.Split(s, ":")
	if len(f) != 3 {
		return 0, 0, false
	}
	pid, err1 := strconv.Atoi(f[0])
	start, err2 := strconv.ParseUint(f[1], 10, 64)
	return pid, start, err1 == nil && err2 == nil && pid > 1
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}
