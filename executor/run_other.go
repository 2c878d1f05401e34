//go:build !linux

package executor

import (
	"context"
	"errors"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/launch"
)

// Run runs the command on pipes as a child of this process, confined by launch.Launcher.
func Run(ctx context.Context, c Command) (Exit, error) {
	if err := c.check(); err != nil {
		return Exit{}, err
	}
	shell, err := plainShell()
	if err != nil {
		return Exit{}, err
	}
	tmp := ""
	if c.Sandbox.Mode != sandbox.FullAccess { // calls cannot write /tmp
		if tmp, err = os.MkdirTemp("", "toold-call-"); err != nil {
			return Exit{}, err
		}
		defer os.RemoveAll(tmp)
		if tmp, err = paths.Resolve(tmp); err != nil {
			return Exit{}, err
		}
		c.Env = append(slices.Clone(c.Env), "TMPDIR="+tmp)
	}
	prefix, report, err := launch.Launcher(c.Sandbox, tmp)
	if err != nil {
		return Exit{}, err
	}
	return runPlain(ctx, c, shell, prefix, report)
}

// IsTerminal reports whether f is a character device, which is the closest check on this system.
func IsTerminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

// DropInput discards unread input of a terminal (tcflush(3)).
func DropInput(f *os.File) {
	_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCFLUSH, unix.TCIFLUSH)
}

// Unread reports whether f, such as a pipe, has data that can be read at once.
func Unread(f *os.File) bool {
	const fionread = 0x4004667f // which package unix does not have
	n, err := unix.IoctlGetInt(int(f.Fd()), fionread)
	return err == nil && n > 0
}

// Probe returns an error: commands have no terminals here.
func Probe() error {
	return errors.New(`commands have pipes only on this system; set terminal: off in the configuration`)
}

// KillIdentity does nothing, since commands have no identity on this system.
func KillIdentity(string) (killed bool, err error) { return false, nil }

// Pool keeps no warm shells on this system.
type Pool struct{}

// NewPool returns nil.
func NewPool(int, func(error)) *Pool { return nil }

// Run is the function Run.
func (*Pool) Run(ctx context.Context, c Command) (Exit, error) { return Run(ctx, c) }

// Reserve prepares nothing.
func (*Pool) Reserve(Command) *Reservation { return &Reservation{} }

// Reservation is a command to run.
type Reservation struct{}

// Run is the function Run.
func (*Reservation) Run(ctx context.Context, c Command) (Exit, error) { return Run(ctx, c) }

// Drop does nothing.
func (*Reservation) Drop() {}

// Prepare does nothing.
func (*Pool) Prepare(Command) {}

// Counts returns zeros.
func (*Pool) Counts() PoolCounts { return PoolCounts{} }

// Flush does nothing.
func (*Pool) Flush() {}

// Close does nothing.
func (*Pool) Close() {}

// ProbePool returns ErrUnavailable.
func ProbePool(ctx context.Context, c Command) (reuses bool, err error) {
	_, err = Run(ctx, c)
	return false, err
}
