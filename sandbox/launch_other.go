//go:build !linux && !darwin

package sandbox

import "context"

// Launcher returns the prefix that starts a command confined as p says, and its report. This
// platform confines nothing: all but danger-full-access, which needs no prefix, fails.
func Launcher(p Profile, _ string) (prefix []string, r Report, err error) {
	if p.Mode != FullAccess {
		return nil, Report{}, Unsupported()
	}
	return nil, p.report(0, false), nil
}

// Try returns the Report of calls under p.
func Try(_ context.Context, p Profile) (Report, error) {
	_, report, err := Launcher(p, "")
	return report, err
}

// Probe reports that nothing can be confined here.
func Probe(context.Context) Capabilities {
	return Capabilities{Features: []Feature{{Name: "sandbox", Why: errPlatform.Error(), Fix: advicePlatform}}}
}
