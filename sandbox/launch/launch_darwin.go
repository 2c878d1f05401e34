package launch

import (
	"context"
	"fmt"

	"github.com/toold/toold/sandbox"
)

const (
	sandboxExec = "/usr/bin/sandbox-exec" // not looked up in PATH
	tierBelt    = "seatbelt"

	beltDegraded = "macOS's sandbox holds files, sockets and the network, and no more: a call's processes are found by their session and their parents, " +
		"nothing limits their number or memory, and repositories cannot be made; for all of the sandbox run the daemon on Linux: in a container or a virtual machine"
)

// Launcher returns the prefix of a command line that confines the command as p says: sandbox-exec(1) with a profile,
// or nothing for danger-full-access. It also returns the Report. tmp is the call's temporary directory.
func Launcher(p sandbox.Profile, tmp string) (prefix []string, r sandbox.Report, err error) {
	if p.Mode == sandbox.FullAccess {
		return nil, reportOf(p, 0, false), nil
	}
	text, parameters, err := seatbelt(p, tmp)
	if err != nil {
		return nil, sandbox.Report{}, &sandbox.StageError{Stage: "seatbelt", Err: err}
	}
	prefix = []string{sandboxExec, "-p", text}
	for _, parameter := range parameters {
		prefix = append(prefix, "-D", parameter)
	}
	return prefix, sandbox.Report{
		Profile: p.Mode.String(), Enforced: []string{tierBelt}, Network: p.Network, Tier: tierBelt, Degraded: beltDegraded,
	}, nil
}

// Try starts a command that tries to escape, and returns the Report of calls under p. The error is a *StageError.
func Try(ctx context.Context, p sandbox.Profile) (sandbox.Report, error) {
	_, report, err := Launcher(p, "")
	if err != nil || p.Mode == sandbox.FullAccess {
		return report, err
	}
	err = trial(ctx, func(p sandbox.Profile, tmp string) ([]string, error) {
		prefix, _, err := Launcher(p, tmp)
		return prefix, err
	})
	if err != nil {
		return sandbox.Report{}, &sandbox.StageError{Stage: "seatbelt", Err: fmt.Errorf("%s does not hold: %w", sandboxExec, err), Advice: advicePlatform}
	}
	return report, nil
}

// Probe tests whether sandbox-exec confines a command.
func Probe(ctx context.Context) []Feature {
	f := Feature{Name: tierBelt, Detail: sandboxExec}
	if _, err := Try(ctx, sandbox.Profile{Mode: sandbox.ReadOnly}); err != nil {
		f.Why, f.Fix = err.Error(), advicePlatform
	}
	f.OK = f.Why == ""
	return []Feature{f}
}
