package console

import (
	"context"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// Interruptible returns a context that ends on Ctrl-C, SIGTERM and, unless it is ignored, SIGHUP. A second Ctrl-C
// ends the program; timeout(1) and shells send the other signals twice. The signals heeded have no effect: with
// SIGPIPE, a write to a closed pipe returns an error.
func Interruptible(parent context.Context, heeded ...os.Signal) (ctx context.Context, stop func()) {
	ends := map[os.Signal]bool{os.Interrupt: true, syscall.SIGTERM: true}
	if !signal.Ignored(syscall.SIGHUP) {
		ends[syscall.SIGHUP] = true
	}
	for _, s := range heeded {
		ends[s] = false
	}
	return UntilCaught(parent, ends, os.Interrupt)
}

// UntilCaught returns a context that the signals with the value true end. After that, a signal in exits ends the
// program.
func UntilCaught(parent context.Context, ends map[os.Signal]bool, exits ...os.Signal) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	caught := make(chan os.Signal, 4)
	signal.Notify(caught, slices.Collect(maps.Keys(ends))...)
	done := make(chan struct{})
	// Ends with the stop function.
	go func() {
		for {
			select {
			case s := <-caught:
				switch {
				case ctx.Err() != nil && slices.Contains(exits, s):
					os.Exit(ExitInterrupted)
				case ends[s]:
					cancel()
				}
			case <-done:
				return
			}
		}
	}()
	return ctx, func() { signal.Stop(caught); close(done); cancel() }
}
