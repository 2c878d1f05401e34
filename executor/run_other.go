//go:build !linux

package executor

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/sandbox"
)

// Run runs the command as a child of this process, on pipes, confined by sandbox.Launcher (see
// runPlain). If that fails, errors.Is finds sandbox.ErrUnavailable.
func Run(ctx context.Context, c Command) (Exit, error) {
	if err := c.check(); err != nil {
		return Exit{}, err
	}
	shell, err := plainShell()
	if err != nil {
		return Exit{}, err
	}
	tmp := ""
	if c.Sandbox.Mode != sandbox.FullAccess { // /tmp must not be written
		if tmp, err = privateDir(); err != nil {
			return Exit{}, err
		}
		defer os.RemoveAll(tmp)
		c.Env = append(slices.Clone(c.Env), "TMPDIR="+tmp)
	}
	prefix, report, err := sandbox.Launcher(c.Sandbox, tmp)
	if err != nil {
		return Exit{}, err
	}
	return runPlain(ctx, c, shell, prefix, report)
}

// privateDir makes a directory for the temporary files of one call.
func privateDir() (string, error) {
	tmp, err := os.MkdirTemp("", "toold-call-")
	if err != nil {
		return "", err
	}
	return paths.Resolve(tmp)
}

// IsTerminal reports whether f is a character device, the closest check available here.
func IsTerminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

// Probe returns an error: commands have no terminals here.
func Probe() error {
	return errors.New(`commands have pipes only on this system; set terminal: off in the configuration`)
}

// KillIdentity does nothing: commands have no identity here, and most end with the daemon.
func KillIdentity(string) (killed bool, err error) { return false, nil }
