package sandbox

import (
	"context"
	"errors"
	"fmt"
)

// Tier is how much of the sandbox holds a call. The zero value is all of it.
type Tier int

// The tiers.
const (
	TierA Tier = iota // every layer
	// TierBwrap is TierA with namespaces that bwrap(1) has made, for machines that give
	// it what they do not give to toold, as Ubuntu's AppArmor does. As much is kept from
	// a call; see withBwrap for what it does without.
	TierBwrap
	// TierB is for machines that refuse a /proc of its own to a namespace, as default
	// containers do: a call's processes are among the machine's and see their command
	// lines. They can neither signal, trace nor change any but their own.
	TierB
	// TierC is for machines that give no user namespaces, and for ordinary users: root
	// could change the mode of every file. Landlock and seccomp alone hold a call. See
	// withoutNamespaces for what is lost.
	TierC
)

// String returns the tier's name in reports.
func (t Tier) String() string { return [...]string{"A", "A-bwrap", "B", "C"}[t] }

// apart reports whether a call's processes have a namespace of their own.
func (t Tier) apart() bool { return t == TierA || t == TierBwrap }

// Choose finds the best tier that this machine gives a profile, none below lowest, and returns the
// profile with it and its Report. The error is that of tier A, a *StageError; it names the setting
// where a lower tier would do.
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

// chooseLower finds the best tier where A has failed.
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

// stageProc is the stage that fails where the machine's /proc is masked.
const stageProc = "mount /proc"
