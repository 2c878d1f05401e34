package link

import (
	"context"
	"errors"
	"os"
	"time"
)

// ErrParentEnded is the cause when a context of WithParent ends because the parent process did.
var ErrParentEnded = errors.New("the program that started this one has ended")

// WithParent returns a context that also ends when the parent process ends, which may leave stdin open.
func WithParent(ctx context.Context) context.Context {
	ctx, end := context.WithCancelCause(ctx)
	parent := os.Getppid()
	// Ends with ctx or with the parent.
	go func() {
		tick := time.Tick(time.Second)
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick:
			}
			if os.Getppid() != parent {
				end(ErrParentEnded)
				return
			}
		}
	}()
	return ctx
}
