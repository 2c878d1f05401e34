package main

import (
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/must"
)

// TestStressLoadLeavesNoGoroutine makes calls, many at once, to a daemon in this
// process. Not parallel: it counts what the whole process has.
func TestStressLoadLeavesNoGoroutine(t *testing.T) {
	calls := 100
	if n, err := strconv.Atoi(os.Getenv("TOOLD_STRESS_LOAD")); err == nil {
		calls = n
	}
	url, token := startDaemon(t)
	connect := func() *client.Client {
		c := must.Get(client.Dial(t.Context(), client.Options{URL: url, Token: token}))(t)
		return c
	}
	load := func(n int) {
		var all sync.WaitGroup
		for w := range 20 {
			// Ends when its share of the calls is made.
			all.Go(func() {
				c := connect()
				defer c.Close()
				for i := w; i < n; i += 20 {
					terminal := []string{"split", "single", "off"}[i%3]
					ret, err := c.Call(t.Context(), client.Call{Tool: "bash", Arguments: map[string]any{"command": "echo hi", "terminal": terminal}}, client.Events{})
					if err != nil || ret.Status != "success" {
						t.Errorf("%v %s", err, ret.Result)
					}
				}
			})
		}
		all.Wait()
	}
	load(20)
	before := settledGoroutines()
	load(calls)
	now := settledGoroutines()
	t.Logf("%d calls: %d goroutines, before %d", calls, now, before)
	// Those that keep two shells ready may have been between two shells before.
	if now > before+8 {
		stacks := make([]byte, 1<<20)
		t.Errorf("%d goroutines, before there were %d:\n%s", now, before, stacks[:runtime.Stack(stacks, true)])
	}
}

// settledGoroutines is how many goroutines there are when their number has not
// changed for a while.
func settledGoroutines() int {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	last, same := runtime.NumGoroutine(), 0
	for same < 15 {
		<-tick.C
		if now := runtime.NumGoroutine(); now == last {
			same++
		} else {
			last, same = now, 0
		}
	}
	return last
}
