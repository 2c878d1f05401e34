package link

import (
	"context"
	"errors"
	"os"
	"time"
)

// ErrParentEnded is the cause of the end of a context of WithParent.
var ErrParentEnded = errors.New("the program that started this one has ended")

// WithParent returns a context that ends with the parent process, which may leave stdin open.
func WithParent(ctx context.Context) context.Context {
	ctx, end := context.WithCancelCause(ctx)
	parent := os.Getppid()
	// Ends with ctx, or this process.
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if os.Getppid() != parent {
				end(ErrParentEnded)
				return
			}
		}
	}()
	return ctx
}
