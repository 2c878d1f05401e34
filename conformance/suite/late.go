//go:build linux

package suite

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

// attempts bounds how often a case is played that was only late: the load of the machine may be the cause.
const attempts = 3

// Trial plays a case in a directory and returns why it failed, and what was only late.
type Trial func(base string) (reasons, late []string)

// Play plays a case in directories of its own below base, again while it was only late; note gets the reason. take is
// called before each attempt and may block until it may use the machine; done is called after it.
func (try Trial) Play(base string, take func(again bool) (done func()), note func(why string)) []string {
	for n := 1; ; n++ {
		dir := filepath.Join(base, strconv.Itoa(n))
		if err := os.Mkdir(dir, 0o755); err != nil {
			return []string{err.Error()}
		}
		done := take(n > 1)
		reasons, late := try(dir)
		done()
		if len(reasons) > 0 || len(late) == 0 || n == attempts {
			return append(reasons, late...)
		}
		note(fmt.Sprintf("is played again (%d of %d): %s", n+1, attempts, late[0]))
	}
}

// Lateness collects what a case did too late.
type Lateness struct {
	mu   sync.Mutex
	list []string
}

// Check adds what took longer than its limit, even when the limit is raised by the present load of the machine.
func (l *Lateness) Check(what string, took, limit time.Duration) {
	if took <= limit {
		return
	}
	if factor := slowness(); took > time.Duration(float64(limit)*factor) {
		l.Add(fmt.Sprintf("%s %v: it took %v, on a machine that is %.1f times as slow as it may be", what, limit, took, factor))
	}
}

// Add notes what was late.
func (l *Lateness) Add(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, why)
}

// All lists what was late.
func (l *Lateness) All() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

// slowness measures how many times slower than on a quiet machine a script is now: from 1 to 20. Starting processes
// suffers more from other load than computing.
func slowness() float64 {
	const usual = 30 * time.Millisecond
	const work = "for ((i = 0; i < 10000; i++)); do :; done; for ((i = 0; i < 10; i++)); do /bin/true; done"
	var took []time.Duration
	for range 3 {
		begun := time.Now()
		if exec.Command("bash", "-c", work).Run() == nil {
			took = append(took, time.Since(begun))
		}
	}
	if len(took) == 0 {
		return 1
	}
	slices.Sort(took)
	return min(20, max(1, float64(took[len(took)/2])/float64(usual)))
}
