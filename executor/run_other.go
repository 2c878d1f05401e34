//go:build !linux

package executor

import (
	"context"
	"errors"
	"os"

	"github.com/toold/toold/sandbox"
)

// Run refuses: errors.Is finds sandbox.ErrUnavailable.
func Run(context.Context, Command) (Exit, error) { return Exit{}, sandbox.Unsupported() }

// IsTerminal reports whether f is a character device, which is the nearest to a
// terminal that can be known here.
func IsTerminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

// Probe reports that there are no terminals for commands here.
func Probe() error { return errors.New("commands cannot run on this platform; run toold on Linux") }

// KillIdentity finds nothing: no command ever ran here.
func KillIdentity(string) (killed bool, err error) { return false, nil }
