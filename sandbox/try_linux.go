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
	spec, handed, err := p.trial()
	if err != nil {
		return Report{}, &StageError{Stage: "profile", Err: err}
	}
	event, err := probe(ctx, spec, handed...)
	if err != nil {
		return Report{}, err
	}
	return p.report(event.ABI, event.Brokered), nil
}

// trial is what the helper of Try is told. What bwrap makes of a view depends on what is
// in it, so that it is tried with all of it.
func (p Profile) trial() (spec helper.Spec, handed []*os.File, err error) {
	if p.Tier == TierBwrap {
		return Command{Profile: p}.spec()
	}
	p.confine(&spec)
	spec.Ports = p.ports()
	return spec, nil, nil
}
