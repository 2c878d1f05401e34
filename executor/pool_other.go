//go:build !linux

package executor

import "context"

// Pool keeps no warm shells here.
type Pool struct{}

// NewPool returns nil.
func NewPool(int, func(error)) *Pool { return nil }

// Run is the function Run.
func (*Pool) Run(ctx context.Context, c Command) (Exit, error) { return Run(ctx, c) }

// Reserve prepares nothing.
func (*Pool) Reserve(Command) *Reservation { return &Reservation{} }

// Reservation is a command that is to run.
type Reservation struct{}

// Run is the function Run.
func (*Reservation) Run(ctx context.Context, c Command) (Exit, error) { return Run(ctx, c) }

// Drop does nothing.
func (*Reservation) Drop() {}

// Prepare does nothing.
func (*Pool) Prepare(Command) {}

// Close does nothing.
func (*Pool) Close() {}

// ProbePool returns ErrUnavailable.
func ProbePool(ctx context.Context, c Command) (reuses bool, err error) {
	_, err = Run(ctx, c)
	return false, err
}
