package launch

import (
	"context"
	"errors"
	"fmt"

	"github.com/toold/toold/sandbox"
)

// Choose finds the best tier, at least lowest, in which this machine can confine the profile. It returns the profile
// with that tier, and its Report. The error is the one of tier A, a *StageError; if a lower tier would work, it names
// the setting that permits that.
func Choose(ctx context.Context, p sandbox.Profile, lowest sandbox.Tier) (sandbox.Profile, sandbox.Report, error) {
	p.Tier, p.Degraded = sandbox.TierA, ""
	if p.Launcher == launcherBwrap && p.Mode != sandbox.FullAccess {
		return chooseBwrap(ctx, p, nil)
	}
	report, err := Try(ctx, p)
	var failed *sandbox.StageError
	if err == nil || p.Mode == sandbox.FullAccess || !errors.As(err, &failed) {
		return p, report, err
	}
	if p.Launcher == launcherNative || !ofNamespaces(failed) {
		return chooseLower(ctx, p, lowest, failed)
	}
	b, report, errBwrap := chooseBwrap(ctx, p, failed)
	if errBwrap == nil {
		return b, report, nil
	}
	c, report, err := chooseLower(ctx, p, lowest, failed)
	if err != nil {
		err = fmt.Errorf("%w; bwrap does not help: %w", err, errBwrap)
	}
	return c, report, err
}

// chooseLower finds the best tier after tier A has failed.
func chooseLower(ctx context.Context, p sandbox.Profile, lowest sandbox.Tier, failed *sandbox.StageError) (sandbox.Profile, sandbox.Report, error) {
	if failed.Stage != stageProc {
		return chooseC(ctx, p, lowest, failed)
	}
	p.Tier = sandbox.TierB
	report, errB := Try(ctx, p)
	switch {
	case errB != nil && lowest < sandbox.TierC:
		return p, report, errors.Join(failed, fmt.Errorf("tier B does not work either: %w", errB))
	case errB != nil:
		return chooseC(ctx, p, lowest, failed)
	case lowest < sandbox.TierB:
		return p, sandbox.Report{}, fmt.Errorf("%w; sandbox.allow_degraded: tier-b in the configuration goes on without a namespace of processes", failed)
	}
	p.Degraded = fmt.Sprintf("a call's processes have no namespace of their own: %s: %v; %s", failed.Stage, failed.Err, failed.Advice)
	report.Degraded = p.Degraded
	return p, report, nil
}

// stageProc is the stage that fails if the machine's /proc is partly hidden, as in containers.
const stageProc = "mount /proc"

// apart reports whether calls in a tier have a PID namespace of their own.
func apart(t sandbox.Tier) bool { return t == sandbox.TierA || t == sandbox.TierBwrap }
