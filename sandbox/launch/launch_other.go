//go:build !linux && !darwin

package launch

import (
	"context"

	"github.com/toold/toold/sandbox"
)

// Launcher returns the prefix that starts a command confined as p says, and its report. This
// platform confines nothing: all but danger-full-access, which needs no prefix, fails.
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

// Probe reports that nothing can be confined here.
func Probe(context.Context) []Feature {
	return []Feature{{Name: "sandbox", Why: errPlatform.Error(), Fix: advicePlatform}}
}
