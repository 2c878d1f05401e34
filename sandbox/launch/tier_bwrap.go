package launch

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/toold/toold/sandbox"
)

// Values of Profile.Launcher.
const (
	launcherNative = "native"
	launcherBwrap  = "bwrap"
)

// withBwrap says what calls in tier A-bwrap lack, and which limits do not apply.
const withBwrap = "there are no connections by name (network: proxy), calls see of tool caches only what they have put there, " +
	"and nothing bounds the number of files in their /tmp nor what they take of inotify"

// chooseBwrap tests whether bwrap can create the namespaces. failed is nil if bwrap is configured.
func chooseBwrap(ctx context.Context, p sandbox.Profile, failed *sandbox.StageError) (sandbox.Profile, sandbox.Report, error) {
	if err := trustBwrap(p); err != nil {
		return p, sandbox.Report{}, &sandbox.StageError{Stage: launcherBwrap, Err: err, Advice: "bubblewrap 0.8 or later is needed, as the distribution has it: sudo apt-get install bubblewrap"}
	}
	b := bwrapped(p)
	report, err := Try(ctx, b)
	if err != nil {
		return p, sandbox.Report{}, err
	}
	why, fix := "as sandbox.launcher says", ""
	if failed != nil {
		why, fix = fmt.Sprintf("toold itself cannot: %s: %v", failed.Stage, failed.Err), "; "+failed.Advice
	}
	b.Degraded = fmt.Sprintf("bwrap makes the namespaces (%s), so %s", why, withBwrap)
	if p.Groups == nil && os.Getuid() == 0 {
		b.Degraded += ", and without a control group nothing bounds the number of processes of a call of root"
	}
	b.Degraded += fix
	report.Degraded = b.Degraded
	return b, report, nil
}

func ofNamespaces(e *sandbox.StageError) bool {
	return !slices.Contains([]string{"profile", "landlock", "seccomp"}, e.Stage)
}

func bwrapped(p sandbox.Profile) sandbox.Profile {
	p.Tier, p.Ports, p.Caches = sandbox.TierBwrap, nil, p.Caches.WithoutOverlays()
	return p
}
