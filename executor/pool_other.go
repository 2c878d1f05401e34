//go:build !linux

package executor

import "context"

// Pool keeps no shells here.
type Pool struct{}

// NewPool returns a pool that keeps no shells.
func NewPool(int, func(error)) *Pool { return nil }

// Run is the function Run.
func (*Pool) Run(ctx context.Context, c Command) (Exit, error) { return Run(ctx, c) }

// Hold makes nothing ready.
func (*Pool) Hold(Command) *Held { return &Held{} }

// Held is a command that is to run.
type Held struct{}

// Run is the function Run.
func (*Held) Run(ctx context.Context, c Command) (Exit, error) { return Run(ctx, c) }

// Drop does nothing.
func (*Held) Drop() {}

// Prepare does nothing.
func (*Pool) Prepare(Command) {}

// Counts returns zeros.
func (*Pool) Counts() PoolCounts { return PoolCounts{} }

// Flush does nothing.
func (*Pool) Flush() {}

// Close does nothing.
func (*Pool) Close() {}

// ProbePool refuses like Run.
func ProbePool(ctx context.Context, c Command) error {
	_, err := Run(ctx, c)
	return err
}
