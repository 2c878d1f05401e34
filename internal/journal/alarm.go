package journal

import (
	"sync"
	"time"
)

// alarm calls do once, after a delay, each time it is set.
type alarm struct {
	after   time.Duration
	do      func()
	running sync.WaitGroup

	mu     sync.Mutex
	timer  *time.Timer // nil while not set
	closed bool
}

// set starts the delay unless it is running.
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

// close cancels the alarm. If do is running, it waits for that.
func (a *alarm) close() {
	a.mu.Lock()
	a.closed = true
	if a.timer != nil && a.timer.Stop() {
		a.running.Done()
	}
	a.mu.Unlock()
	a.running.Wait()
}
