package launch

import (
	"context"
	"errors"
	"os"

	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/internal/helper"
)

var errRootListed = errors.New("it does not hold root, whose calls could change the mode and the owner of every file")

// Try confines one helper as a profile says, and returns the Report of calls under that profile. It takes as long as
// starting a call. The error is a *StageError.
func Try(ctx context.Context, p sandbox.Profile) (sandbox.Report, error) {
	if err := check(p); err != nil {
		return sandbox.Report{}, &sandbox.StageError{Stage: "profile", Err: err}
	}
	if p.Mode == sandbox.FullAccess {
		return reportOf(p, 0, false), nil
	}
	if p.Tier == sandbox.TierC && os.Geteuid() == 0 {
		return sandbox.Report{}, &sandbox.StageError{Stage: "tier C", Err: errRootListed, Advice: "start toold as an ordinary user"}
	}
	spec, handed, err := trialSpec(p)
	if err != nil {
		return sandbox.Report{}, &sandbox.StageError{Stage: "profile", Err: err}
	}
	event, err := probe(ctx, spec, handed...)
	if err != nil {
		return sandbox.Report{}, err
	}
	return reportOf(p, event.ABI, event.Brokered), nil
}

// trialSpec returns the specification for Try. bwrap depends on the complete view, so it includes all of it.
func trialSpec(p sandbox.Profile) (spec helper.Spec, handed []*os.File, err error) {
	if p.Tier == sandbox.TierBwrap {
		return Command{Profile: p}.spec()
	}
	confine(p, &spec)
	spec.Ports = ports(p)
	return spec, nil, nil
}
