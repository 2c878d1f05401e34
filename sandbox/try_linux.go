package sandbox

import (
	"context"

	"github.com/toold/toold/sandbox/internal/helper"
)

// Try lets one helper confine itself as a profile asks, and tells what calls
// under that profile will be held by. It takes as long as the start of a call.
// The error is a *StageError.
func Try(ctx context.Context, p Profile) (Report, error) {
	if err := p.check(); err != nil {
		return Report{}, &StageError{Stage: "profile", Err: err}
	}
	if p.Mode == FullAccess {
		return p.report(0, false), nil
	}
	event, err := probe(ctx, helper.Spec{
		Namespaces: true, Shared: p.Tier == TierB, Loopback: !p.Network, Ports: p.ports(), Landlock: true, Seccomp: true,
	})
	if err != nil {
		return Report{}, err
	}
	return p.report(event.ABI, event.Brokered), nil
}
