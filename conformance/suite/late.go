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

// attempts is how often a case is played that did all that it should, but too late:
// how long things take is not the target's alone. What is wrong is wrong at once.
const attempts = 3

// Trial plays a case in a directory and returns what was wrong, and what was only late.
type Trial func(base string) (reasons, late []string)

// Play plays a case in directories of its own below base. It is played again, and note is
// called, while all that is wrong with it is that it was late. take is called for each
// attempt and gives it its turn on the machine.
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

// Check notes what took longer than its limit, and longer than the limit would be
// on a machine as busy as this one is now.
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

// slowness is how many times as long as on a quiet machine a little work of the kinds that
// cases do takes here, now: from 1 to 20. Beside other work, starting processes is slowed
// more than computing.
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
