//go:build linux

package conformance

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toold/toold/client"
	"github.com/toold/toold/conformance/suite"
	"github.com/toold/toold/message"
)

// amount is how often a stress test does something: a variable of the environment,
// which make stress sets, or a number for every day.
func amount(t *testing.T, variable string, everyDay int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return everyDay
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q: expected a number", variable, text)
	}
	return n
}

// share has workers do the numbers below n.
func share(workers, n int, do func(worker, i int)) {
	next := make(chan int)
	var all sync.WaitGroup
	for w := range workers {
		// Ends when all numbers are done.
		all.Go(func() {
			for i := range next {
				do(w, i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
}

// sixWays starts a process in each way in which one leaves its shell: a child, a
// group of its own, a session, a session by a double fork, one deaf to signals,
// one with no environment by a double fork.
const sixWays = `sleep MARK &
(set -m; sleep MARK &)
setsid sleep MARK &
(setsid sh -c 'sleep MARK & exit 0' &)
(trap '' TERM HUP INT; nohup setsid sleep MARK >/dev/null 2>&1 &)
(exec env -i /usr/bin/setsid /bin/sh -c '/bin/sleep MARK </dev/null >/dev/null 2>&1 &')
until [ "$(grep -ls MARK /proc/[0-9]*/cmdline | wc -l)" -ge 7 ]; do :; done
echo started
exec sleep MARK
`

// TestStressNoTreeSurvivesAStop cancels trees of processes, on all terminals.
func TestStressNoTreeSurvivesAStop(t *testing.T) {
	t.Parallel()
	n := amount(t, "TOOLD_STRESS_TREES", 6)
	r := newRig(t, map[string]any{"limits": map[string]any{"grace": "20ms"}})
	const workers = 4
	var clients []*client.Client
	for range workers {
		clients = append(clients, r.dial(client.Options{}))
	}
	var mu sync.Mutex
	survived, stopped := 0, 0
	share(workers, n, func(w, i int) {
		mark := fmt.Sprintf("8%09d.%d", time.Now().UnixNano()%1e9, i)
		id := "tree-" + mark
		ret, err := clients[w].Call(t.Context(), client.Call{ID: id, Tool: "bash", Arguments: map[string]any{
			"command": strings.ReplaceAll(sixWays, "MARK", mark), "terminal": []string{"split", "off", "single"}[i%3],
		}}, client.Events{Output: func(_ message.OutputDelta, data []byte) {
			if bytes.Contains(data, []byte("started")) {
				clients[w].Cancel(id, "")
			}
		}})
		left := survivors(mark)
		mu.Lock()
		defer mu.Unlock()
		if err != nil || !ret.Cancelled || !strings.Contains(stream(ret.Stdout), "started") {
			t.Errorf("%s: %v, %.300s", id, err, ret.Result)
			return
		}
		stopped++
		survived += len(left)
		if len(left) > 0 {
			t.Errorf("%s: %q survived", id, left)
		}
	})
	t.Logf("%d trees of 7 processes stopped, %d processes survived", stopped, survived)
}

// TestStressEveryTailIsExact runs commands that end right after their last byte.
func TestStressEveryTailIsExact(t *testing.T) {
	t.Parallel()
	n := amount(t, "TOOLD_STRESS_TAILS", 60)
	r := newRig(t, nil)
	want := ""
	for i := range 1500 {
		want += fmt.Sprintln(i)
	}
	want += "THE END"
	const workers = 4
	for _, terminal := range []string{"split", "single", "off"} {
		var clients []*client.Client
		for range workers {
			clients = append(clients, r.dial(client.Options{}))
		}
		var mu sync.Mutex
		exact := 0
		share(workers, n, func(w, i int) {
			script, shown := `printf '%s\n' {0..1499}; printf 'THE END'`, func(ret message.ToolReturn) string { return stream(ret.Stdout) }
			if i%2 == 1 && terminal != "single" {
				script, shown = "{ "+script+"; } >&2", func(ret message.ToolReturn) string { return stream(ret.Stderr) }
			}
			live := 0
			ret := r.bash(clients[w], script, terminal, client.Events{Output: func(_ message.OutputDelta, data []byte) { live += len(data) }})
			mu.Lock()
			defer mu.Unlock()
			if got := shown(ret); got != want || live != len(want) {
				t.Errorf("%s: %d bytes returned and %d live of %d, the end is %.20q", terminal, len(got), live, len(want), got[max(0, len(got)-20):])
				return
			}
			exact++
		})
		t.Logf("%s: %d of %d tails are exact", terminal, exact, n)
	}
}

// TestStressProcessSubstitutionIsHeard runs commands whose output passes through a
// process that the shell does not wait for.
func TestStressProcessSubstitutionIsHeard(t *testing.T) {
	t.Parallel()
	n := amount(t, "TOOLD_STRESS_SUBSTITUTIONS", 20)
	r := newRig(t, nil)
	want := "one\n"
	for i := range 3000 {
		want += fmt.Sprintln(i + 1)
	}
	want += "two\n"
	c := r.dial(client.Options{})
	for _, terminal := range []string{"split", "single"} {
		exact := 0
		for range n {
			ret := r.bash(c, "exec > >(tee /dev/null) 2>&1; echo one; seq 1 3000; echo two", terminal, client.Events{})
			if got := stream(ret.Stdout); got != want {
				t.Errorf("%s: %d bytes of %d, the end is %.20q", terminal, len(got), len(want), got[max(0, len(got)-20):])
				continue
			}
			exact++
		}
		t.Logf("%s: %d of %d outputs are complete", terminal, exact, n)
	}
}

// TestStressQuietHolderDoesNotHoldACall runs commands that leave a process which
// holds their output open and prints nothing.
func TestStressQuietHolderDoesNotHoldACall(t *testing.T) {
	t.Parallel()
	n := amount(t, "TOOLD_STRESS_HOLDERS", 5)
	r := newRig(t, nil)
	c := r.dial(client.Options{})
	for _, terminal := range []string{"split", "single", "off"} {
		var took []time.Duration
		for range n {
			begun := time.Now()
			ret := r.bash(c, "sleep 1000 & echo done", terminal, client.Events{})
			took = append(took, time.Since(begun))
			if got := stream(ret.Stdout); got != "done\n" || len(ret.Leftovers) != 1 {
				t.Errorf("%s: got %q, leftovers %v", terminal, got, ret.Leftovers)
			}
		}
		t.Logf("%s: a call with a quiet holder ends after %v (p50), %v (p99)", terminal, percentile(took, 0.5), percentile(took, 0.99))
	}
}

// TestStressLoadLeavesNothing runs commands, many at once, and compares what the daemon
// holds afterwards with what it held after the first of them. Each has an inotify instance,
// and a user has 128 by default: the daemons and commands of other tests need theirs.
func TestStressLoadLeavesNothing(t *testing.T) {
	t.Parallel()
	n := amount(t, "TOOLD_STRESS_LOAD", 150)
	const workers = 40
	r := newRig(t, map[string]any{"limits": map[string]any{"concurrent_calls": workers, "concurrent_per_connection": workers}})
	var clients []*client.Client
	for range 10 {
		clients = append(clients, r.dial(client.Options{}))
	}
	scripts := []string{"true", "seq 1 300", "sleep 1000 & echo left", "echo to stderr >&2", "exit 3"}
	load := func(n int) {
		share(workers, n, func(w, i int) {
			terminal := []string{"split", "single", "off"}[i%3]
			if ret, err := r.try(clients[w%len(clients)], scripts[i%len(scripts)], terminal, client.Events{}); err != nil || ret.ErrorType != nil {
				t.Errorf("call %d: %v %.300s", i, err, ret.Result)
			}
		})
	}
	load(workers)
	before := settledUsage(t.Context(), r.daemon.pid)
	// The two shells that wait for the next commands are for the terminals asked for
	// last: two ptys each at most, a few descriptors more or less.
	before.Ptys, before.FDs = max(before.Ptys, 4), before.FDs+4
	load(n)
	var now usage
	if !suite.Poll(patience, func() bool {
		now = usageOf(r.daemon.pid)
		return leaked(before, now, []string{"fds", "ptys", "children", "zombies", "cgroups"}) == ""
	}) {
		t.Errorf("the daemon holds %+v, before it held %+v", now, before)
	}
	// Go keeps a thread for each call that was in the kernel at the same time once,
	// which is a matter of the machine; more than one for each that can be is a leak.
	if now.Threads > before.Threads+workers {
		t.Errorf("the daemon has %d threads, before it had %d", now.Threads, before.Threads)
	}
	t.Logf("%d calls, %d at once: the daemon holds %+v, after the first %d it held %+v", n, workers, now, workers, before)
}
