package sandbox

import (
	"context"
	"fmt"
	"os"
	"slices"
)

// The words of Profile.Launcher.
const (
	launcherNative = "native"
	launcherBwrap  = "bwrap"
)

// withBwrap says what a call in tier A-bwrap cannot have, and what does not bound it.
const withBwrap = "there are no connections by name (network: proxy), calls see of tool caches only what they have put there, " +
	"and nothing bounds the number of files in their /tmp nor what they take of inotify"

// chooseBwrap tries whether bwrap makes the namespaces. failed is nil if it is configured.
func chooseBwrap(ctx context.Context, p Profile, failed *StageError) (Profile, Report, error) {
	if err := trustBwrap(p); err != nil {
		return p, Report{}, &StageError{Stage: launcherBwrap, Err: err, Advice: "bubblewrap 0.8 or later is needed, as the distribution has it: sudo apt-get install bubblewrap"}
	}
	b := p.bwrapped()
	report, err := Try(ctx, b)
	if err != nil {
		return p, Report{}, err
	}
	why, mend := "as sandbox.launcher says", ""
	if failed != nil {
		why, mend = fmt.Sprintf("toold itself cannot: %s: %v", failed.Stage, failed.Err), "; "+failed.Advice
	}
	b.Degraded = fmt.Sprintf("bwrap makes the namespaces (%s), so %s", why, withBwrap)
	if p.Groups == nil && os.Getuid() == 0 {
		b.Degraded += ", and without a control group nothing bounds the number of processes of a call of root"
	}
	b.Degraded += mend
	report.Degraded = b.Degraded
	return b, report, nil
}

// ofNamespaces reports whether external namespaces may do better.
func (e *StageError) ofNamespaces() bool {
	return !slices.Contains([]string{"profile", "landlock", "seccomp"}, e.Stage)
}

// bwrapped is the profile for tier A-bwrap.
func (p Profile) bwrapped() Profile {
	p.Tier, p.Ports, p.Caches = TierBwrap, nil, p.Caches.withoutOverlays()
	return p
}
