//go:build !linux && !darwin

package sandbox

import "context"

// Launcher gives the words that start a command confined as p says, and what holds
// it then. Nothing can be confined on this platform: it refuses all but
// danger-full-access, which takes no words.
func Launcher(p Profile, _ string) (prefix []string, r Report, err error) {
	if p.Mode != FullAccess {
		return nil, Report{}, Unsupported()
	}
	return nil, p.report(0, false), nil
}

// Try tells what calls under a profile will be held by: nothing.
func Try(_ context.Context, p Profile) (Report, error) {
	_, report, err := Launcher(p, "")
	return report, err
}

// Probe reports that nothing can be confined here.
func Probe(context.Context) Capabilities {
	return Capabilities{Features: []Feature{{Name: "sandbox", Why: errPlatform.Error(), Mend: advicePlatform}}}
}
