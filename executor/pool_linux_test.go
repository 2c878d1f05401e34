package executor

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
)

func filled(t *testing.T, n int, c Command) *Pool {
	t.Helper()
	p := NewPool(0, nil)
	p.size = n
	t.Cleanup(p.Close)
	p.Prepare(c)
	p.refill(t.Context())
	if len(p.warm) != n {
		t.Fatalf("%d shells wait, want %d", len(p.warm), n)
	}
	return p
}

func callPool(t *testing.T, p *Pool, c Command) (out string, waited bool) {
	t.Helper()
	var b bytes.Buffer
	c.Stdout = &b
	h := p.Reserve(c)
	must.Get(h.Run(t.Context(), c))(t)
	waited = h.waited
	return b.String(), waited
}

func TestEveryWaitingShellRunsOneScript(t *testing.T) {
	t.Parallel()
	c := inWorkspace(t, Split, sandbox.WorkspaceWrite)
	p := filled(t, 2, c)
	var waited []bool
	for range 3 {
		c.Script = "echo $PPID ${x-none}; x=set; touch mark; ls; rm mark"
		out, w := callPool(t, p, c)
		if out != "1 none\nmark\n" {
			t.Errorf("got %q", out)
		}
		waited = append(waited, w)
	}
	if diff := cmp.Diff([]bool{true, true, false}, waited); diff != "" {
		t.Errorf("which calls found a waiting shell:\n%s", diff)
	}
}

// A protected file that was replaced since the shell started, as git replaces its
// configuration, must not be the old one.
func TestAWaitingShellDoesNotShowAReplacedProtectedFile(t *testing.T) {
	t.Parallel()
	c := inWorkspace(t, Split, sandbox.WorkspaceWrite)
	config := filepath.Join(c.Dir, "config")
	c.Sandbox.Protect = []string{config}
	c.Script = "cat config; echo x 2>/dev/null >config || echo kept"
	write := func(content string) {
		must.Do(t, errors.Join(os.WriteFile(config+".new", []byte(content), 0o600), os.Rename(config+".new", config)))
	}
	write("one\n")
	p := filled(t, 2, c)
	if out, waited := callPool(t, p, c); out != "one\nkept\n" || !waited {
		t.Errorf("a waiting shell: %t; it printed %q", waited, out)
	}
	write("two\n")
	if out, waited := callPool(t, p, c); out != "two\nkept\n" || waited {
		t.Errorf("after the change, a waiting shell: %t; it printed %q", waited, out)
	}
}

func TestAShellWaitsForOneKindOfCommandOnly(t *testing.T) {
	t.Parallel()
	c := inWorkspace(t, Split, sandbox.WorkspaceWrite)
	sub := filepath.Join(c.Dir, "sub")
	must.Do(t, os.Mkdir(sub, 0o700))
	p := filled(t, 1, c)
	const look = `pwd; echo $A; stty size 2>/dev/null; touch x 2>/dev/null && echo wrote`
	for name, change := range map[string]func(*Command){
		"folder":      func(c *Command) { c.Dir = sub },
		"environment": func(c *Command) { c.Env = append(c.Env[:len(c.Env):len(c.Env)], "A=b") },
		"terminal":    func(c *Command) { c.Terminal = Single },
		"window":      func(c *Command) { c.Rows, c.Cols = 7, 9 },
		"input":       func(c *Command) { c.Stdin = true },
		"profile":     func(c *Command) { c.Sandbox.Mode = sandbox.ReadOnly },
		"limits":      func(c *Command) { c.Sandbox.Limits.OpenFiles = 50 },
		"long script": func(c *Command) { c.Script += strings.Repeat("#", room) },
	} {
		other := c
		other.Script = look
		change(&other)
		want := see(t, other).Out
		if got, waited := callPool(t, p, other); waited || got != want {
			t.Errorf("another %s: got %q, want %q; waited: %v", name, got, want, waited)
		}
	}
	if _, waited := callPool(t, p, c); !waited {
		t.Error("the waiting shell is gone")
	}
}

// A hidden path that has come since the warm shell started would be readable.
func TestAShellThatWaitedThroughAChangeIsNotUsed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(ws, home string) error{
		"hidden path comes": func(_, home string) error {
			return os.WriteFile(home+"/later", []byte("secret"), 0o644)
		},
		"hidden path is replaced": func(_, home string) error {
			return joined(os.WriteFile(home+"/new", []byte("secret"), 0o644), os.Rename(home+"/new", home+"/key"))
		},
		"hidden path is made anew": func(_, home string) error {
			return joined(os.Remove(home+"/key"), os.WriteFile(home+"/key", []byte("secret"), 0o644))
		},
		"hidden path is removed, and its other name takes its place": func(_, home string) error {
			return joined(os.Link(home+"/key", home+"/new"), os.Remove(home+"/key"), os.Rename(home+"/new", home+"/key"))
		},
		"hidden path is moved, and its other name takes its place": func(_, home string) error {
			return joined(os.Link(home+"/key", home+"/new"), os.Rename(home+"/key", home+"/old"), os.Rename(home+"/new", home+"/key"))
		},
		"hidden folder is made anew": func(_, home string) error {
			return joined(os.RemoveAll(home+"/keys"), os.Mkdir(home+"/keys", 0o755), os.WriteFile(home+"/keys/k", []byte("secret"), 0o644))
		},
		"hidden link leads elsewhere": func(_, home string) error {
			return joined(os.Remove(home+"/link"), os.Symlink("plain", home+"/link"))
		},
		"workspace is replaced":  func(ws, _ string) error { return joined(os.Rename(ws, ws+".old"), os.Mkdir(ws, 0o755)) },
		"workspace is made anew": func(ws, _ string) error { return joined(os.Remove(ws), os.Mkdir(ws, 0o755)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := inWorkspace(t, Off, sandbox.WorkspaceWrite)
			home := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
			must.Do(t, joined(os.WriteFile(home+"/key", []byte("secret"), 0o644), os.WriteFile(home+"/plain", []byte("secret"), 0o644),
				os.Mkdir(home+"/keys", 0o755), os.Symlink("key", home+"/link")))
			c.Sandbox.Write = []string{home}
			c.Sandbox.Hide = []string{home + "/key", home + "/keys", home + "/later", home + "/link"}
			p := filled(t, 1, c)
			must.Do(t, change(c.Dir, home))
			c.Script = "cat " + home + "/{key,keys/k,later,link} 2>/dev/null; touch here && echo made"
			out, waited := callPool(t, p, c)
			if waited || out != "made\n" {
				t.Errorf("waited: %v, printed %q", waited, out)
			}
			if _, err := os.Stat(c.Dir + "/here"); err != nil {
				t.Error("the call did not write into the workspace of now")
			}
		})
	}
}

func joined(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestACallCannotReachAWaitingShell(t *testing.T) {
	t.Parallel()
	c := inWorkspace(t, Split, sandbox.WorkspaceWrite)
	p := filled(t, 2, c)
	helper := strconv.Itoa(p.warm[1].process.PID())
	c.Script = "kill -KILL " + helper + "; ls -d /proc/" + helper + "; cat /proc/" + helper + "/environ; echo tried; kill -KILL -1"
	if out, waited := callPool(t, p, c); !waited || out != "tried\n" {
		t.Errorf("waited: %v, printed %q", waited, out)
	}
	c.Script = "echo mine"
	if out, waited := callPool(t, p, c); !waited || out != "mine\n" {
		t.Errorf("waited: %v, printed %q", waited, out)
	}
}

func TestAShellThatDiedWhileItWaitedIsNotMissed(t *testing.T) {
	t.Parallel()
	c := inWorkspace(t, Split, sandbox.WorkspaceWrite)
	p := filled(t, 1, c)
	must.Do(t, syscall.Kill(p.warm[0].process.PID(), syscall.SIGKILL))
	c.Script = "echo ran; exit 3"
	if out, waited := callPool(t, p, c); waited || out != "ran\n" {
		t.Errorf("waited: %v, printed %q", waited, out)
	}
}

func reporting() (failed func(error), reported chan error) {
	reported = make(chan error, 1000)
	return func(err error) { reported <- err }, reported
}

func TestAPoolThatCouldNotMakeItsFirstShellSaysWhyAndTriesAgain(t *testing.T) {
	t.Parallel()
	c := inWorkspace(t, Off, sandbox.WorkspaceWrite)
	c.Dir += "/missing"
	failed, reported := reporting()
	p := NewPool(0, failed)
	defer p.Close()
	ctx, stop := context.WithCancel(t.Context())
	p.size, p.stop = 1, stop
	p.work.Go(func() { p.keep(ctx, p.provide, time.Millisecond) })
	p.Prepare(c)
	for range 3 {
		if err := <-reported; !strings.Contains(err.Error(), "no further shell waits") || !strings.Contains(err.Error(), "missing") {
			t.Error(err)
		}
	}
	must.Do(t, os.Mkdir(c.Dir, 0o700))
	await(t, func() bool { return len(p.waiting()) == 1 })
}

func TestAShellThatCannotBeReplacedIsReported(t *testing.T) {
	t.Parallel()
	c := inWorkspace(t, Off, sandbox.WorkspaceWrite)
	failed, reported := reporting()
	p := NewPool(1, failed)
	defer p.Close()
	p.Prepare(c)
	await(t, func() bool { return len(p.waiting()) == 1 })
	c.Dir += "/missing"
	p.Prepare(c)
	for err := range reported {
		if strings.Contains(err.Error(), "missing") {
			break
		}
		t.Log(err) // the machine's mounts changed while the first shell was tried
	}
}

// However many calls begin meanwhile, what fails is tried after 1, 2, 4 … minutes.
func TestAShellThatCannotStartIsTriedMoreAndMoreSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var tried, failed []time.Duration
		p := &Pool{size: 1, wake: make(chan struct{}, 1), failed: func(error) { failed = append(failed, time.Since(begun)) }}
		ctx, stop := context.WithCancel(t.Context())
		p.work.Go(func() {
			p.keep(ctx, func(context.Context) error {
				if tried = append(tried, time.Since(begun)); len(tried) > 4 {
					return nil
				}
				return errors.New("no room")
			}, tryAgain)
		})
		for range 15*60 + 30 { // until the fifth attempt, which succeeds
			p.nudge()
			synctest.Wait()
			<-time.After(time.Second)
		}
		stop()
		p.work.Wait()
		want := []time.Duration{0, time.Minute, 3 * time.Minute, 7 * time.Minute}
		if !slices.Equal(failed, want) {
			t.Errorf("it failed after %v, want %v", failed, want)
		}
		if len(tried) < 6 || tried[4] != 15*time.Minute || tried[5] > tried[4]+time.Second {
			t.Errorf("it was tried after %v", tried)
		}
	})
}

func TestManyCallsShareAPool(t *testing.T) {
	t.Parallel()
	c := inWorkspace(t, Split, sandbox.WorkspaceWrite)
	p := NewPool(2, nil)
	defer p.Close()
	p.Prepare(c)
	var callers sync.WaitGroup
	for i := range 16 {
		// Ends with its calls.
		callers.Go(func() {
			for j := range 5 {
				var out bytes.Buffer
				c := c
				c.Script, c.Stdout = "echo "+strconv.Itoa(100*i+j), &out
				if _, err := p.Run(t.Context(), c); err != nil || "echo "+out.String() != c.Script+"\n" {
					t.Errorf("%s: printed %q, %v", c.Script, out.String(), err)
				}
			}
		})
	}
	callers.Wait()
}

func TestAPoolRefillsItselfAndCloseLeavesNothing(t *testing.T) {
	t.Parallel()
	c := inWorkspace(t, Split, sandbox.WorkspaceWrite)
	p := NewPool(2, nil)
	p.Prepare(c)
	await(t, func() bool { return len(p.waiting()) == 2 })
	c.Script = "true"
	if _, waited := callPool(t, p, c); !waited {
		t.Error("no shell waited")
	}
	await(t, func() bool { return len(p.waiting()) == 2 })
	old := p.waiting()
	p.Flush()
	for _, s := range old {
		<-s.process.Exited()
	}
	await(t, func() bool { return len(p.waiting()) == 2 })
	p.expire(time.Now())
	p.nudge()
	await(t, func() bool { return len(p.waiting()) == 2 })
	last := p.waiting()
	p.Close()
	for _, s := range last {
		if err := syscall.Kill(s.process.PID(), 0); err != syscall.ESRCH {
			t.Errorf("helper %d after Close: %v", s.process.PID(), err)
		}
	}
}

func (p *Pool) waiting() []*shell {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.warm)
}

// Idle returns how many helpers wait for another call.
func (p *Pool) Idle() int { return p.slots.Idle() }

func await(t *testing.T, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for !holds() {
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatal("waited in vain")
		}
	}
}

// The end of a sandbox that is empty is put off until calls rest, but not for ever
// more of them.
func TestFewEmptySandboxesAreKeptAndNoneForLong(t *testing.T) {
	t.Parallel()
	c := inWorkspace(t, Off, sandbox.WorkspaceWrite)
	p := filled(t, 1, c)
	var helpers []int
	for range 4 {
		c.Script, c.Started = "true", func(s Started) { helpers = append(helpers, s.PID) }
		must.Get(p.Run(t.Context(), c))(t)
		p.mu.Lock()
		if n := len(p.empty); n > 1 {
			t.Errorf("%d helpers without a process are kept", n)
		}
		p.mu.Unlock()
	}
	p.refill(t.Context()) // as when calls rest
	p.mu.Lock()
	if n := len(p.empty); n > 0 {
		t.Errorf("%d helpers are kept although no call runs", n)
	}
	p.mu.Unlock()
	p.Close()
	for _, pid := range helpers {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("helper %d lives: %v", pid, err)
		}
	}
}
