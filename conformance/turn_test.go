//go:build linux

package conformance

import (
	"fmt"
	"sync"
	"testing"
)

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

// again says with -v that a case is played again, and why.
func again(id string) (note func(why string)) {
	return func(why string) {
		if testing.Verbose() {
			fmt.Println(id, why)
		}
	}
}
