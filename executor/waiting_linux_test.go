package executor_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
)

type watcher struct {
	answer []executor.Input

	mu   sync.Mutex
	told []executor.Waiting
}

func (w *watcher) watch(t *testing.T, c executor.Command) (result, executor.Exit) {
	t.Helper()
	in := make(chan executor.Input, len(w.answer))
	c.Input = in
	c.Waiting = func(now executor.Waiting) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.told = append(w.told, now); len(w.told) == 1 {
			for _, i := range w.answer {
				in <- i
			}
		}
	}
	return run(t, c)
}

func (w *watcher) kinds() []string {
	var kinds []string
	for _, now := range w.told {
		if !now.Waits {
			now.Kind = ""
		}
		kinds = append(kinds, now.Kind)
	}
	return kinds
}

// terminalsOf gives a script both kinds of terminal, confined on one of them: the next one on the other.
func terminalsOf(n int) map[executor.Terminal]sandbox.Mode {
	return map[executor.Terminal]sandbox.Mode{executor.Split: profiles[n%2], executor.Single: profiles[(n+1)%2]}
}

func TestAWaitForInputIsToldWithItsKind(t *testing.T) {
	t.Parallel()
	line := []executor.Input{{Data: []byte("bob\n")}}
	for n, test := range []struct {
		program, script, kind, output string
		answer                        []executor.Input
	}{
		{"bash", `read x; echo "got $x"`, "line", "got bob\n", line},
		{"bash", `read -s x; echo "got $x"`, "password", "got bob\n", line},
		{"bash", `read -p 'name? ' x </dev/tty; echo "got $x"`, "password", "got bob\n", line},
		{"cat", `true | cat; sed -u 's/^/got /;q' | cat`, "line", "got bob\n", line},
		{"python3", `python3 -c 'import getpass; print("got " + getpass.getpass(""))'`, "password", "got bob\n", line},
		{"vi", `vi -u NONE; echo "got out"`, "tui", "got out\n", []executor.Input{{Data: []byte(":q\r")}}},
		{"less", `seq 500 | less; echo "got out"`, "tui", "got out\n", []executor.Input{{Data: []byte("q")}}}, // unconfined it takes keys from the terminal of standard error
		{"bash", `read -n 1 x; echo "got $x"`, "tui", "got b\n", line},
	} {
		for mode, profile := range terminalsOf(n) {
			t.Run(strings.Join([]string{test.script, mode.String(), profile.String()}, " "), func(t *testing.T) {
				t.Parallel()
				requireProgram(t, test.program)
				c := in(t, mode, test.script)
				c.Sandbox.Mode, c.Stdin = profile, true
				w := watcher{answer: test.answer}
				got, _ := w.watch(t, c)
				if len(w.told) == 0 || w.told[0].Kind != test.kind || !w.told[0].Waits {
					t.Fatalf("told %+v, want kind %s", w.told, test.kind)
				}
				if now := w.told[0]; now.Process.PID == 0 || now.Process.Command == "" || time.Since(now.Since) < 700*time.Millisecond {
					t.Errorf("told %+v", now)
				}
				if !strings.HasSuffix(got.Out, test.output) || got.Reason != executor.Exited {
					t.Errorf("got %+v", got)
				}
			})
		}
	}
}

func TestAWaitAtAPipeIsTold(t *testing.T) {
	t.Parallel()
	for _, profile := range profiles {
		c := in(t, executor.Off, `(cd /; cat)`)
		c.Sandbox.Mode, c.Stdin = profile, true
		w := watcher{answer: []executor.Input{{Data: []byte("x")}, {EOF: true}}}
		got, _ := w.watch(t, c)
		if diff := cmp.Diff(result{Out: "x"}, got); diff != "" || !slices.Equal(w.kinds(), []string{"line"}) {
			t.Errorf("%s: told %q %s", profile, w.kinds(), diff)
		}
	}
}

func TestTheEndOfAWaitIsTold(t *testing.T) {
	t.Parallel()
	c := in(t, executor.Split, `read a; until [ -e told ]; do sleep 0.05; done; read b; echo $a$b`)
	c.Stdin = true
	input := make(chan executor.Input, 1)
	c.Input = input
	var kinds []string
	c.Waiting = func(w executor.Waiting) {
		if kinds = append(kinds, w.Kind); w.Waits {
			input <- executor.Input{Data: []byte("x\n")}
		} else {
			kinds[len(kinds)-1] = "end"
			if err := os.WriteFile(filepath.Join(c.Dir, "told"), nil, 0o600); err != nil {
				t.Error(err)
			}
		}
	}
	expect(t, c, result{Out: "xx\n"})
	must.Match(t, []string{"line", "end", "line"}, kinds)
}

func TestSilentWorkIsNoWait(t *testing.T) {
	t.Parallel()
	for _, script := range []string{
		`sleep 1.5; echo ok`,
		`sleep 1.5 & wait; echo ok`,
		`for ((i = 0; i < 300000; i++)); do :; done; timeout 1 bash -c 'while :; do :; done'; echo ok`,
		`mkfifo p; timeout 1.5 cat p; echo ok`,
		`printf 'name? '; sleep 1.5; echo ok`,
		`sleep 1.5 | cat; echo ok`,
	} {
		for _, mode := range terminals {
			t.Run(mode.String()+" "+script, func(t *testing.T) {
				t.Parallel()
				c := in(t, mode, script)
				c.Stdin = true
				var w watcher
				got, _ := w.watch(t, c)
				if !strings.HasSuffix(got.Out, "ok\n") || len(w.told) != 0 {
					t.Errorf("got %+v, told %+v", got, w.told)
				}
			})
		}
	}
}

// Such programs throw away what was typed ahead, the end of the input with it.
func TestProgramsThatAskOnTheTerminalEndWithoutInput(t *testing.T) {
	t.Parallel()
	for n, test := range []struct{ program, script string }{
		{"bash", `read -s -p 'Password: ' x </dev/tty; echo; echo "rc $?"`},
		{"python3", `python3 -c 'import getpass; getpass.getpass()' 2>&1; echo "rc $?"`},
		{"python3", `python3 -c 'import termios; termios.tcflush(0, termios.TCIFLUSH); input("sure? ")' 2>&1; echo "rc $?"`},
		{"python3", `python3 -q 2>&1; echo "rc $?"`},
		{"ssh-keygen", `ssh-keygen -q -f key 2>&1; echo "rc $?"`},
		{"git", `printf 'protocol=https\nhost=x.invalid\n\n' | GIT_TERMINAL_PROMPT=1 git credential fill 2>&1; echo "rc $?"`},
		{"bash", `read -n 1 x; echo "rc $?"`},
		{"bash", `cat; cat; bash -c 'cat </dev/tty'; echo "rc $?"`},
	} {
		for mode, profile := range terminalsOf(n) {
			t.Run(strings.Join([]string{test.script, mode.String(), profile.String()}, " "), func(t *testing.T) {
				t.Parallel()
				requireProgram(t, test.program)
				c := in(t, mode, test.script)
				c.Sandbox.Mode = profile
				got, _ := run(t, c)
				if !strings.Contains(got.Out, "rc ") || got.Reason != executor.Exited {
					t.Errorf("got %+v", got)
				}
			})
		}
	}
}

// A pager takes keys from the terminal, not the end of its input.
func TestAProgramThatWaitsForKeysThatCannotComeIsEnded(t *testing.T) {
	t.Parallel()
	requireProgram(t, "less")
	for _, profile := range profiles {
		c := in(t, executor.Split, `seq 50000 | less; echo "not reached"`)
		c.Sandbox.Mode = profile
		var w watcher
		got, e := w.watch(t, c)
		if got.Reason != executor.Starved || !e.Waiting.Waits || e.Waiting.Kind != "tui" || e.Waiting.Process.Command != "less" {
			t.Errorf("%s: got %+v, %+v", profile, got, e)
		}
		if len(w.told) == 0 || w.told[0].Kind != "tui" {
			t.Errorf("%s: told %+v", profile, w.told)
		}
	}
}

func TestATimeoutTellsForWhatTheCommandWaited(t *testing.T) {
	t.Parallel()
	c := in(t, executor.Single, `read -s -p 'Password: ' x </dev/tty`)
	c.Stdin, c.Sandbox.Mode = true, sandbox.WorkspaceWrite
	for c.Timeout = 2 * time.Second; c.Timeout < 5*time.Minute; c.Timeout *= 2 {
		var w watcher
		got, e := w.watch(t, c)
		if len(w.told) == 0 && got.Reason == executor.TimedOut {
			continue // its time was over before anybody saw that it waits
		}
		if got.Reason != executor.TimedOut || !e.Waiting.Waits || e.Waiting.Kind != "password" {
			t.Errorf("got %+v, %+v", got, e)
		}
		return
	}
	t.Error("nothing was told of the wait")
}
