package journal

import (
	"sync"
	"time"
)

// alarm does something once, some time after it was set.
type alarm struct {
	after   time.Duration
	do      func()
	running sync.WaitGroup

	mu     sync.Mutex
	timer  *time.Timer // nil while it is not set
	closed bool
}

// set has it go off. It does nothing while it is set already.
func (a *alarm) set() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer != nil || a.closed {
		return
	}
	a.running.Add(1)
	a.timer = time.AfterFunc(a.after, func() {
		defer a.running.Done()
		a.mu.Lock()
		a.timer = nil
		a.mu.Unlock()
		a.do()
	})
}

// close waits until it is done, and keeps it from going off again.
func (a *alarm) close() {
	a.mu.Lock()
	a.closed = true
	if a.timer != nil && a.timer.Stop() {
		a.running.Done()
	}
	a.mu.Unlock()
	a.running.Wait()
}
