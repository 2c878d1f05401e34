package sandbox

import (
	"context"
	"errors"
	"os"

	"github.com/toold/toold/sandbox/internal/helper"
)

var errRootListed = errors.New("it does not hold root, whose calls could change the mode and the owner of every file")

// Try makes one helper confine itself as a profile asks, and returns the Report of calls under that
// profile. It takes as long as starting a call. The error is a *StageError.
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

// trial returns the specification for Try. bwrap's view depends on its contents, so all of them are
// included.
func (p Profile) trial() (spec helper.Spec, handed []*os.File, err error) {
	if p.Tier == TierBwrap {
		return Command{Profile: p}.spec()
	}
	p.confine(&spec)
	spec.Ports = p.ports()
	return spec, nil, nil
}
