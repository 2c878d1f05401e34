package executor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/launch"
)

var (
	terminals = []executor.Terminal{executor.Split, executor.Single, executor.Off}
	profiles  = []sandbox.Mode{sandbox.WorkspaceWrite, sandbox.FullAccess}
)

// in gives the command that runs script confined to a fresh workspace. Its
// timeout only ends a test that hangs, and what hears a signal has time to act on it.
func in(t testing.TB, mode executor.Terminal, script string) executor.Command {
	t.Helper()
	requireNamespaces(t)
	ws := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	return executor.Command{
		Script: script, Dir: ws, Terminal: mode, Timeout: 5 * time.Minute, Grace: time.Minute,
		Env:     executor.BaseEnv(executor.EnvOptions{From: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}}),
		Sandbox: sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: ws},
	}
}

// everywhere gives the command of in on each terminal, confined and not.
func everywhere(t testing.TB, script string) iter.Seq[executor.Command] {
	return func(yield func(executor.Command) bool) {
		for _, mode := range terminals {
			for _, profile := range profiles {
				c := in(t, mode, script)
				if c.Sandbox.Mode = profile; !yield(c) {
					return
				}
			}
		}
	}
}

type result struct {
	Out, Err string
	Code     int
	Signal   string
	Reason   executor.Reason
}

func run(t testing.TB, c executor.Command) (result, executor.Exit) {
	t.Helper()
	var out, errs bytes.Buffer
	if c.Stdout == nil {
		c.Stdout = &out
	}
	if c.Stderr == nil {
		c.Stderr = &errs
	}
	e, err := executor.Run(t.Context(), c)
	if err != nil {
		t.Fatalf("%s: %v", c.Terminal, err)
	}
	return result{out.String(), errs.String(), e.Code, e.Signal, e.Reason}, e
}

func expect(t *testing.T, c executor.Command, want result) {
	t.Helper()
	got, _ := run(t, c)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s, %q:\n%s", c.Terminal, c.Script, diff)
	}
}

func TestAllThreeDescriptorsAreTerminalsAndStreamsStayApart(t *testing.T) {
	t.Parallel()
	const script = `for fd in 0 1 2; do [ -t $fd ] && echo tty $fd; done; echo err >&2`
	expect(t, in(t, executor.Split, script), result{Out: "tty 0\ntty 1\ntty 2\n", Err: "err\n"})
	expect(t, in(t, executor.Single, script), result{Out: "tty 0\ntty 1\ntty 2\nerr\n"})
	expect(t, in(t, executor.Off, script), result{Err: "err\n", Code: 0})
}

func TestExitCodesAndSignalsAreExact(t *testing.T) {
	must.Long(t)
	t.Parallel()
	for script, want := range map[string]result{
		"true":            {},
		"exit 3":          {Code: 3},
		"exit 256":        {},
		"exit -1":         {Code: 255},
		"kill -TERM $$":   {Code: 143, Signal: "SIGTERM"},
		"kill -KILL $$":   {Code: 137, Signal: "SIGKILL"},
		"kill -SEGV $$":   {Code: 139, Signal: "SIGSEGV"},
		"timeout 60 cat":  {}, // its input is at its end
		"false & wait; :": {},
		"(exit 124)":      {Code: 124},
	} {
		for c := range everywhere(t, script) {
			expect(t, c, want)
		}
	}
}

func TestOutputIsByteExact(t *testing.T) {
	t.Parallel()
	for _, mode := range terminals {
		expect(t, in(t, mode, `printf 'a\n\nb\r\nc\xff\x00\x1b[1m\x04end'`), result{Out: "a\n\nb\r\nc\xff\x00\x1b[1m\x04end"})
	}
}

func TestTailIsNeverLost(t *testing.T) {
	must.Long(t)
	t.Parallel()
	var numbers strings.Builder
	for i := 1; i <= 4000; i++ {
		fmt.Fprintln(&numbers, i)
	}
	want := numbers.String() + "tail"
	for _, mode := range terminals {
		out := in(t, mode, `seq 4000; printf tail`)
		errs := in(t, mode, `{ seq 4000; printf tail; } >&2`)
		for range 5 {
			if got, _ := run(t, out); got.Out != want {
				t.Fatalf("%s: %d of %d bytes arrived", mode, len(got.Out), len(want))
			}
			if got, _ := run(t, errs); got.Out+got.Err != want {
				t.Fatalf("%s: %d of %d bytes of stderr arrived", mode, len(got.Out+got.Err), len(want))
			}
		}
	}
}

func TestProcessSubstitutionIsHeard(t *testing.T) {
	t.Parallel()
	for _, mode := range terminals {
		for range 5 {
			expect(t, in(t, mode, `exec > >(tee copy) 2>&1; echo one; echo two`), result{Out: "one\ntwo\n"})
		}
	}
}

// A writer that sleeps in between may be quiet for longer than a command's children are waited
// for.
func TestWriterThatEndsShortlyAfterTheShellIsHeard(t *testing.T) {
	t.Parallel()
	for _, mode := range terminals {
		expect(t, in(t, mode, `(for i in 1 2 3; do for ((k = 0; k < 1000; k++)); do :; done; echo $i; done) & exit 4`), result{Out: "1\n2\n3\n", Code: 4})
	}
}

func TestQuietHolderEndsTheCallAndIsReported(t *testing.T) {
	t.Parallel()
	for c := range everywhere(t, `sleep 1000 & echo started`) {
		got, e := run(t, c)
		must.Match(t, result{Out: "started\n"}, got)
		if len(e.Leftovers) != 1 || e.Leftovers[0].Command != "sleep 1000" {
			t.Errorf("%s %s: leftovers are %v", c.Terminal, c.Sandbox.Mode, e.Leftovers)
		}
	}
}

func TestNoisyHolderCannotKeepTheCallOpen(t *testing.T) {
	t.Parallel()
	for _, mode := range terminals {
		c := in(t, mode, `yes & echo first >&2`)
		c.Stdout = io.Discard
		if mode == executor.Single {
			c.Script = `yes & exit`
		}
		_, e := run(t, c)
		if e.Reason != executor.Exited || len(e.Leftovers) != 1 || e.Leftovers[0].Command != "yes" {
			t.Errorf("%s: got %+v", mode, e)
		}
	}
}

func TestACommandIsStoppedByTERMAndAfterItsGraceByKILL(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		script string
		grace  time.Duration
		want   result
	}{
		"what a trap prints is kept": {`trap 'echo bye; exit 9' TERM; echo ready; while :; do :; done`, time.Minute, result{Out: "ready\nbye\n", Code: 9}},
		"it ignores TERM":            {`trap '' TERM HUP INT; echo ready; while :; do sleep 1000; done`, 50 * time.Millisecond, result{Out: "ready\n", Code: 137, Signal: "SIGKILL"}},
		"it has stopped itself":      {`echo ready; while :; do kill -STOP $$; done`, time.Minute, result{Out: "ready\n", Code: 143, Signal: "SIGTERM"}},
	} {
		x.want.Reason = executor.Stopped
		for c := range everywhere(t, x.script) {
			if x.want.Signal != "" && c.Sandbox.Mode == sandbox.FullAccess {
				continue // the helper signals both alike
			}
			c.Grace = x.grace
			got, err := stopWhenReady(t, c)
			if diff := cmp.Diff(x.want, got); diff != "" || err != nil {
				t.Errorf("%s: %s %s: %v %s", name, c.Terminal, c.Sandbox.Mode, err, diff)
			}
		}
	}
}

func TestTimeoutIsToldApart(t *testing.T) {
	t.Parallel()
	c := in(t, executor.Split, `sleep 1000`)
	c.Timeout = 50 * time.Millisecond
	expect(t, c, result{Code: 143, Signal: "SIGTERM", Reason: executor.TimedOut})
}

func TestEndedContextStartsNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := in(t, executor.Off, `touch ran`)
	e, err := executor.Run(ctx, c)
	if err != nil || e.Reason != executor.Stopped || e.Signal != "SIGTERM" {
		t.Errorf("got %+v, %v", e, err)
	}
	if _, err := os.Stat(filepath.Join(c.Dir, "ran")); err == nil {
		t.Error("it ran")
	}
}

func TestBadFolderIsNamed(t *testing.T) {
	t.Parallel()
	base := in(t, executor.Off, "true")
	file := filepath.Join(base.Dir, "file")
	must.Do(t, os.WriteFile(file, nil, 0o600))
	hidden := filepath.Join(base.Dir, "hidden")
	must.Do(t, os.Mkdir(hidden, 0o700))
	base.Sandbox.Hide = []string{hidden}
	for dir, want := range map[string]error{
		base.Dir + "/none": fs.ErrNotExist, file: syscall.ENOTDIR, hidden: fs.ErrPermission,
	} {
		for _, mode := range terminals {
			c := base
			c.Dir, c.Terminal = dir, mode
			_, err := executor.Run(t.Context(), c)
			var bad *launch.DirError
			if !errors.As(err, &bad) || !errors.Is(err, want) || bad.Dir != dir {
				t.Errorf("%s: got %v, want %v", dir, err, want)
			}
			if errors.Is(err, sandbox.ErrUnavailable) {
				t.Errorf("%v blames the sandbox", err)
			}
		}
	}
}

func TestScriptWithNULIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := executor.Run(t.Context(), in(t, executor.Off, "touch a\x00b")); err == nil {
		t.Error("it ran")
	}
}

func TestScriptRunsByteForByte(t *testing.T) {
	t.Parallel()
	expect(t, in(t, executor.Off, "printf %s '\xff\xfe'"), result{Out: "\xff\xfe"})
	expect(t, in(t, executor.Off, "cat <<E # why\nx\nE\n# last"), result{Out: "x\n"})
}

func TestLongScriptRuns(t *testing.T) {
	t.Parallel()
	long := "x='" + strings.Repeat("\xc3\xa4", 100_000) + "'\necho ${#x} \"$0\" $#\n[ -e /dev/fd/3 ] && echo open\n"
	for _, mode := range terminals {
		expect(t, in(t, mode, long+"exit 5"), result{Out: "100000 /bin/bash 0\n", Code: 5})
	}
}

func TestControllingTerminal(t *testing.T) {
	t.Parallel()
	const script = `echo out >/dev/tty; tty; exec </dev/null >/dev/null 2>&1; echo late >/dev/tty`
	expect(t, in(t, executor.Split, script), result{Out: "out\n/dev/console\nlate\n"})
	expect(t, in(t, executor.Off, `(echo x >/dev/tty) 2>/dev/null || echo none`), result{Out: "none\n"})
}

func TestInteractiveShellHasJobControl(t *testing.T) {
	t.Parallel()
	got, _ := run(t, in(t, executor.Single, `bash --norc --noprofile -ic 'sleep 0.01 & fg; jobs; echo $-'`))
	if !strings.Contains(got.Out, "sleep 0.01\n") || strings.Contains(got.Out, "no job control") || got.Code != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestClosedInputIsAtItsEnd(t *testing.T) {
	t.Parallel()
	for _, mode := range terminals {
		expect(t, in(t, mode, `cat; read x || echo end; cat; (cat); wc -c </dev/stdin`), result{Out: "end\n0\n"})
	}
}

func TestChildrenStartClean(t *testing.T) {
	t.Parallel()
	const script = `umask; ulimit -c; grep -E 'Sig(Blk|Ign)' /proc/self/status | cut -f2; cat /proc/self/oom_score_adj`
	expect(t, in(t, executor.Off, script), result{Out: "0022\n0\n0000000000000000\n0000000000000000\n500\n"})
	expect(t, in(t, executor.Off, `ls /proc/$$/fd >list; cat list`), result{Out: "0\n1\n2\n"})
}

func TestFileLimitIsTheUsers(t *testing.T) {
	t.Parallel()
	plain := must.Get(shellOutput(t, `ulimit -Sn`))(t)
	c := in(t, executor.Off, `ulimit -Sn`)
	for _, most := range []uint64{0, 1 << 20} { // above what the user has
		c.Sandbox.Limits.OpenFiles = most
		expect(t, c, result{Out: plain})
	}
	c.Sandbox.Limits.OpenFiles = 77
	expect(t, c, result{Out: "77\n"})
}

// Go raises the soft limit of every program for itself, the helper included.
func TestSoftFileLimitIsTheUsers(t *testing.T) {
	t.Parallel()
	requireNamespaces(t)
	again := exec.CommandContext(t.Context(), "bash", "-c", `ulimit -Sn 600 && exec "$0" -test.run '^TestFileLimitIsTheUsers$' -test.v`, os.Args[0])
	out, err := again.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestFileLimitIsTheUsers") {
		t.Errorf("%v\n%s", err, out)
	}
}

// Who closes Abort wants it to do nothing more, not even in a trap.
func TestAnAbortedCommandIsKilledAtOnce(t *testing.T) {
	t.Parallel()
	for _, mode := range terminals {
		for _, profile := range profiles {
			m := mark(t)
			c := inFIFO(t, mode, profile, tree(m)+`trap 'echo bye' TERM; echo ready; while :; do sleep `+m+`; done`)
			abort, out := make(chan struct{}), listenFor("ready")
			c.Abort, c.Stdout, c.Stderr, c.Grace = abort, out, io.Discard, time.Hour
			var closer sync.WaitGroup
			// Ends when the command is ready or the test is over.
			closer.Go(func() {
				select {
				case <-out.come:
				case <-t.Context().Done():
				}
				close(abort)
			})
			e, err := executor.Run(t.Context(), c)
			closer.Wait()
			if err != nil || e.Reason != executor.Aborted || strings.Contains(out.String(), "bye") || running(t, m) != 0 {
				t.Errorf("%s %s: %+v, %v, it printed %q", mode, profile, e, err, out.String())
			}
		}
	}
}
