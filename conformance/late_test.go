//go:build linux

package conformance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// attempts is how often a case is played that did all that it should, but too late:
// how long things take is not the daemon's alone. What is wrong is wrong at once.
const attempts = 3

// trial plays a case in a folder and tells what was wrong, and what was only late.
type trial func(base string) (reasons, late []string)

// play plays a case in folders of its own below base. It is played again, and says
// so, while all that is wrong with it is that it was late. take is called for each
// attempt and gives it its turn on the machine.
func (try trial) play(id, base string, take func(again bool) (done func())) []string {
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
		if testing.Verbose() {
			fmt.Printf("%s is played again (%d of %d): %s\n", id, n+1, attempts, late[0])
		}
	}
}

// exclusive is held for writing by a case that is played again.
var exclusive sync.RWMutex

// turn gives a case the machine for itself when it is played again.
func turn(again bool) (done func()) {
	if again {
		exclusive.Lock()
		return exclusive.Unlock
	}
	exclusive.RLock()
	return exclusive.RUnlock
}

// beside lets a case run beside all others, also beside one that has the machine for
// itself.
func beside(bool) (done func()) { return func() {} }

// lateness collects what a case did too late.
type lateness struct {
	mu   sync.Mutex
	list []string
}

// check notes what took longer than its limit, and longer than the limit would be
// on a machine as busy as this one is now.
func (l *lateness) check(what string, took, limit time.Duration) {
	if took <= limit {
		return
	}
	if factor := slowness(); took > time.Duration(float64(limit)*factor) {
		l.add(fmt.Sprintf("%s %v: it took %v, on a machine that is %.1f times as slow as it may be", what, limit, took, factor))
	}
}

func (l *lateness) add(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, why)
}

func (l *lateness) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

// slowness is how many times as long as on a quiet machine a little work takes here,
// now: from 1 to 10.
func slowness() float64 {
	const usual = 30 * time.Millisecond
	var took []time.Duration
	for range 3 {
		begun := time.Now()
		if exec.Command("bash", "-c", "for ((i = 0; i < 20000; i++)); do :; done").Run() == nil {
			took = append(took, time.Since(begun))
		}
	}
	return min(10, max(1, float64(percentile(took, 0.5))/float64(usual)))
}
