package executor

import (
	"runtime"
	"sync"
	"testing"

	"github.com/creack/pty"
)

// A collection of garbage moves stacks. What the kernel writes to must not move with them: else
// the terminal of a command is that of another.
func TestBothSidesOfATerminalAreOneTerminal(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	var collector, openers sync.WaitGroup
	// Ends with done.
	collector.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				runtime.GC()
			}
		}
	})
	for rows := range 2000 {
		// Ends with the terminal.
		openers.Go(func() {
			if deep(1000) == 1000 {
				sameTerminal(t, uint16(rows+1))
			}
		})
		if rows%8 == 7 {
			openers.Wait()
		}
	}
	openers.Wait()
	close(done)
	collector.Wait()
}

// deep uses much of the stack.
//
//go:noinline
func deep(n int) int {
	if n > 0 {
		return deep(n-1) + 1
	}
	return 0
}

// sameTerminal reads a size on one side that was set on the other.
func sameTerminal(t *testing.T, rows uint16) {
	master, slave, err := openTerminal(rows, 7)
	if err != nil {
		t.Error(err)
		return
	}
	defer master.Close()
	defer slave.Close()
	if size, err := pty.GetsizeFull(slave); err != nil || size.Rows != rows || size.Cols != 7 {
		t.Errorf("%s has the size %v (%v), want %d rows of 7", slave.Name(), size, err, rows)
	}
}
