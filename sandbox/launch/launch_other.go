//go:build !linux && !darwin

package launch

import (
	"context"

	"github.com/toold/toold/sandbox"
)

// Launcher returns the prefix of a command line that confines the command, and its Report. On this platform it
// returns an error except for danger-full-access, which needs no prefix.
func Launcher(p sandbox.Profile, _ string) (prefix []string, r sandbox.Report, err error) {
	if p.Mode != sandbox.FullAccess {
		return nil, sandbox.Report{}, unsupported()
	}
	return nil, reportOf(p, 0, false), nil
}

// Try returns the Report of calls under p.
func Try(_ context.Context, p sandbox.Profile) (sandbox.Report, error) {
	_, report, err := Launcher(p, "")
	return report, err
}

// Probe reports that nothing can be confined on this platform.
func Probe(context.Context) []Feature {
	return []Feature{{Name: "sandbox", Why: errPlatform.Error(), Fix: advicePlatform}}
}
