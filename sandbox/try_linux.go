package sandbox

import (
	"context"
	"errors"
	"os"

	"github.com/toold/toold/sandbox/internal/helper"
)

var errRootListed = errors.New("it does not hold root, whose calls could change the mode and the owner of every file")

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
	if p.Tier == TierC && os.Geteuid() == 0 {
		return Report{}, &StageError{Stage: "tier C", Err: errRootListed, Advice: "start toold as an ordinary user"}
	}
	var spec helper.Spec
	p.confine(&spec)
	spec.Ports = p.ports()
	event, err := probe(ctx, spec)
	if err != nil {
		return Report{}, err
	}
	return p.report(event.ABI, event.Brokered), nil
}
