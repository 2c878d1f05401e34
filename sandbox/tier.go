package sandbox

import (
	"context"
	"errors"
	"fmt"
)

// Tier is how many layers of the sandbox confine a call. The zero value is all.
type Tier int

const (
	TierA Tier = iota // every layer
	// TierBwrap is TierA with namespaces made by bwrap(1), for machines that let only
	// bwrap make them, as Ubuntu's AppArmor does. It confines as much; see withBwrap
	// for what it lacks.
	TierBwrap
	// TierB is for machines that refuse a new /proc to a namespace, as default
	// containers do: calls see the machine's processes and their command lines. They
	// can neither signal, trace nor change any but their own.
	TierB
	// TierC is for machines without user namespaces, and for ordinary users: root could
	// change the mode of every file. Only Landlock and seccomp confine a call. See
	// withoutNamespaces for what is lost.
	TierC
)

// String returns the name used in reports.
func (t Tier) String() string { return [...]string{"A", "A-bwrap", "B", "C"}[t] }

// apart reports whether calls have their own PID namespace.
func (t Tier) apart() bool { return t == TierA || t == TierBwrap }

// Choose finds the best tier that this machine supports for a profile, at least
// lowest, and returns the profile with it and its Report. The error is that of tier
// A, a *StageError; it names the setting if a lower tier would work.
func Choose(ctx context.Context, p Profile, lowest Tier) (Profile, Report, error) {
	p.Tier, p.Degraded = TierA, ""
	if p.Launcher == launcherBwrap && p.Mode != FullAccess {
		return chooseBwrap(ctx, p, nil)
	}
	report, err := Try(ctx, p)
	var failed *StageError
	if err == nil || p.Mode == FullAccess || !errors.As(err, &failed) {
		return p, report, err
	}
	if p.Launcher == launcherNative || !failed.ofNamespaces() {
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

// chooseLower finds the best tier after A has failed.
func chooseLower(ctx context.Context, p Profile, lowest Tier, failed *StageError) (Profile, Report, error) {
	if failed.Stage != stageProc {
		return chooseC(ctx, p, lowest, failed)
	}
	p.Tier = TierB
	report, errB := Try(ctx, p)
	switch {
	case errB != nil && lowest < TierC:
		return p, report, errors.Join(failed, fmt.Errorf("tier B does not work either: %w", errB))
	case errB != nil:
		return chooseC(ctx, p, lowest, failed)
	case lowest < TierB:
		return p, Report{}, fmt.Errorf("%w; sandbox.allow_degraded: tier-b in the configuration goes on without a namespace of processes", failed)
	}
	p.Degraded = fmt.Sprintf("a call's processes have no namespace of their own: %s: %v; %s", failed.Stage, failed.Err, failed.Advice)
	report.Degraded = p.Degraded
	return p, report, nil
}

// stageProc is the stage that fails if the machine's /proc is masked.
const stageProc = "mount /proc"
