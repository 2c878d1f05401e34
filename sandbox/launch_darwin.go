package sandbox

import (
	"context"
	"fmt"
)

const (
	sandboxExec = "/usr/bin/sandbox-exec" // never looked up in PATH
	tierBelt    = "seatbelt"

	beltDegraded = "macOS's sandbox holds files, sockets and the network, and no more: a call's processes are found by their session and their parents, " +
		"nothing limits their number or memory, and repositories cannot be made; for all of the sandbox run the daemon on Linux: in a container or a virtual machine"
)

// Launcher returns the prefix that starts a command confined as p says, and its report:
// sandbox-exec(1) with a profile; none with danger-full-access. tmp is the call's own temporary
// directory.
func Launcher(p Profile, tmp string) (prefix []string, r Report, err error) {
	if p.Mode == FullAccess {
		return nil, p.report(0, false), nil
	}
	text, parameters, err := p.seatbelt(tmp)
	if err != nil {
		return nil, Report{}, &StageError{Stage: "seatbelt", Err: err}
	}
	prefix = []string{sandboxExec, "-p", text}
	for _, parameter := range parameters {
		prefix = append(prefix, "-D", parameter)
	}
	return prefix, Report{
		Profile: p.Mode.String(), Enforced: []string{tierBelt}, Network: p.Network, Tier: tierBelt, Degraded: beltDegraded,
	}, nil
}

// Try starts a command that tries to escape, and returns the Report of calls under p. The error is
// a *StageError.
func Try(ctx context.Context, p Profile) (Report, error) {
	_, report, err := Launcher(p, "")
	if err != nil || p.Mode == FullAccess {
		return report, err
	}
	err = trial(ctx, func(p Profile, tmp string) ([]string, error) {
		prefix, _, err := Launcher(p, tmp)
		return prefix, err
	})
	if err != nil {
		return Report{}, &StageError{Stage: "seatbelt", Err: fmt.Errorf("%s does not hold: %w", sandboxExec, err), Advice: advicePlatform}
	}
	return report, nil
}

// Probe tests whether sandbox-exec confines a command.
func Probe(ctx context.Context) Capabilities {
	f := Feature{Name: tierBelt, Detail: sandboxExec}
	if _, err := Try(ctx, Profile{Mode: ReadOnly}); err != nil {
		f.Why, f.Fix = err.Error(), advicePlatform
	}
	f.OK = f.Why == ""
	return Capabilities{Features: []Feature{f}}
}
