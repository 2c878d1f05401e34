package executor_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
)

func talk(t *testing.T, c executor.Command, inputs ...executor.Input) result {
	t.Helper()
	out, errs := listenFor("ready\n"), listenFor("\x00")
	in := make(chan executor.Input)
	c.Stdout, c.Stderr, c.Input, c.Stdin = out, errs, in, true
	stop := make(chan struct{})
	done := make(chan struct{})
	// Ends when all was given or the command has ended.
	go func() {
		defer close(done)
		select {
		case <-out.come:
		case <-stop:
		}
		for _, i := range inputs {
			select {
			case in <- i:
			case <-stop:
			}
		}
	}()
	got, _ := run(t, c)
	close(stop)
	<-done
	got.Out, got.Err = out.String(), errs.String()
	return got
}

func TestInputAndSignalsReachThoseForWhomTheyAre(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		script string
		input  []executor.Input
		want   string
	}{
		{`echo ready; read a; echo "got $a"; cat`, []executor.Input{{Data: []byte("one\n")}, {Data: []byte("two\nend")}, {EOF: true}}, "got one\ntwo\nend"},
		// To the group in the foreground.
		{`trap 'echo shell' INT; bash -c 'echo ready; exec sleep 1000'; echo "sleep $?"`, []executor.Input{{Signal: "SIGINT"}}, "shell\nsleep 130\n"},
		// To the shell alone: the signal is pending when its child gets the line, and the shell's trap
		// runs as soon as the child has ended.
		{
			`trap 'echo shell' USR1; (trap 'echo child' USR1; echo ready; read x; echo "read $x"); echo end`,
			[]executor.Input{{Signal: "USR1", ToShell: true}, {Data: []byte("it\n")}},
			"read it\nshell\nend\n",
		},
	} {
		for c := range everywhere(t, test.script) {
			got := talk(t, c, test.input...)
			if diff := cmp.Diff(result{Out: "ready\n" + test.want}, got); diff != "" {
				t.Errorf("%s %s: %s", c.Terminal, c.Sandbox.Mode, diff)
			}
		}
	}
}

func TestPipeTakesLongLines(t *testing.T) {
	t.Parallel()
	c := in(t, executor.Off, `echo ready; wc -c`)
	got := talk(t, c, executor.Input{Data: make([]byte, 300_000)}, executor.Input{EOF: true}, executor.Input{Data: []byte("late")})
	if got.Out != "ready\n300000\n" {
		t.Errorf("got %q", got.Out)
	}
}

// More than a terminal's line editor takes, in one piece and in many, between
// lines as people type them.
func TestLongLinesArriveWhole(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789 abcdefghijklmnopqrstuvwxyz~ ", 2500) // about 100 kB
	text := "short\n" + long + "\n\n" + long[:4094] + "\n" + long[:4095] + "\n" + long[:4096] + "\nlast\n" + long + "no newline"
	for _, size := range []int{len(text), 32 << 10, 1000} {
		for _, mode := range terminals {
			var inputs []executor.Input
			for piece := range slices.Chunk([]byte(text), size) {
				inputs = append(inputs, executor.Input{Data: piece})
			}
			c := in(t, mode, `echo ready; cat >f; cat; [ -t 0 ] && stty -a | grep -o -e '[-]*icanon' -e '-extproc'; cat f`)
			got := talk(t, c, append(inputs, executor.Input{EOF: true})...)
			if mode != executor.Off {
				got.Out = strings.Replace(got.Out, "icanon\n-extproc\n", "", 1)
			}
			if diff := cmp.Diff(result{Out: "ready\n" + text}, got); diff != "" {
				at := 0
				for want := "ready\n" + text; at < min(len(want), len(got.Out)) && want[at] == got.Out[at]; {
					at++
				}
				t.Errorf("%s, pieces of %d: %d bytes arrived, want %d; they differ from %d on: %.60q", mode, size, len(got.Out), len(text)+6, at, got.Out[at:])
			}
		}
	}
}

// Go's runtime signals its own threads all the time; a busy machine sees many more
// such interruptions than a quiet one. Not at the same time as other tests, which
// it would slow down.
func TestSignalsOfTheRuntimeLoseNoInput(t *testing.T) {
	long := strings.Repeat("0123456789", 20_000) + "\n"
	for _, mode := range terminals {
		stop := make(chan struct{})
		var storm sync.WaitGroup
		// Ends when the command has ended.
		storm.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					signalThreads(t, syscall.SIGURG)
				}
			}
		})
		got := talk(t, in(t, mode, `echo ready; read -r a; echo ${#a}`), executor.Input{Data: []byte(long)})
		close(stop)
		storm.Wait()
		if diff := cmp.Diff(result{Out: "ready\n200000\n"}, got); diff != "" {
			t.Errorf("%s: %s", mode, diff)
		}
	}
}

func signalThreads(t *testing.T, sig syscall.Signal) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Error(err)
	}
	for _, task := range tasks {
		if tid, err := strconv.Atoi(task.Name()); err == nil {
			_ = syscall.Tgkill(os.Getpid(), tid, sig) // it may have ended
		}
	}
}

func TestALineAfterALongOneIsALineAgain(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 50_000)
	for _, mode := range terminals {
		c := in(t, mode, `echo ready; read -r a; echo ${#a}; read -r b; echo "$b"; stty -a 2>/dev/null | grep -c -e ' -extproc'; cat`)
		got := talk(t, c, executor.Input{Data: []byte(long + "\n")}, executor.Input{Data: []byte("next\n")}, executor.Input{EOF: true})
		want := "ready\n50000\nnext\n1\n"
		if mode == executor.Off {
			want = "ready\n50000\nnext\n0\n"
		}
		if got.Out != want {
			t.Errorf("%s: got %q", mode, got.Out)
		}
	}
}

func TestInputThatNobodyReadsHoldsUpNothing(t *testing.T) {
	t.Parallel()
	for _, mode := range terminals {
		c := in(t, mode, `trap 'exit 6' USR1; echo ready; while :; do :; done`)
		got := talk(t, c, executor.Input{Data: make([]byte, 1<<20)}, executor.Input{Data: []byte("x")}, executor.Input{Signal: "usr1"})
		if got.Code != 6 {
			t.Errorf("%s: got %+v", mode, got)
		}
	}
}

// Its sender is told of what has been taken, and so can bound the rest.
func TestInputThatIsNotReadIsNotTaken(t *testing.T) {
	t.Parallel()
	for _, mode := range terminals {
		var taken, before atomic.Int64
		c := in(t, mode, `trap 'exit 6' USR1; echo ready; while :; do :; done`)
		out, input := listenFor("ready\n"), make(chan executor.Input)
		c.Stdout, c.Input, c.Stdin = out, input, true
		var sender sync.WaitGroup
		// Ends when all is sent; the command takes it until it gets the signal.
		sender.Go(func() {
			<-out.come
			for range 100 {
				input <- executor.Input{Data: make([]byte, 64<<10), Taken: func(was bool) {
					if was {
						taken.Add(1)
					}
				}}
			}
			before.Store(taken.Load())
			input <- executor.Input{Signal: "usr1"}
		})
		got, _ := run(t, c)
		sender.Wait()
		if got.Code != 6 || before.Load() > 2 {
			t.Errorf("%s: %d pieces were taken; got %+v", mode, before.Load(), got)
		}
	}
}

// What is thrown away is not taken, and its sender need not wait for the end to be told.
func TestInputThatIsThrownAwayIsNotTaken(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		mode   executor.Terminal
		script string
		stdin  bool
		first  []executor.Input
	}{
		"none":               {executor.Off, "echo ready; sleep 1000", false, nil},
		"none on a terminal": {executor.Split, "echo ready; sleep 1000", false, nil},
		"after its end":      {executor.Off, "echo ready; sleep 1000", true, []executor.Input{{EOF: true}}},
		"after ^D":           {executor.Split, "echo ready; sleep 1000", true, []executor.Input{{EOF: true}}},
		"closed":             {executor.Off, "exec <&-; echo ready; exec sleep 1000", true, nil},
	} {
		c := in(t, tc.mode, tc.script)
		out, input, taken := listenFor("ready\n"), make(chan executor.Input), make(chan bool)
		c.Stdout, c.Input, c.Stdin = out, input, tc.stdin
		var sender sync.WaitGroup
		// Ends when the command has been stopped.
		sender.Go(func() {
			<-out.come
			for _, one := range tc.first {
				input <- one
			}
			input <- executor.Input{Data: []byte("lost\n"), Taken: func(was bool) { taken <- was }}
			if <-taken {
				t.Errorf("%s: the input was taken", name)
			}
			input <- executor.Input{Signal: "KILL", ToShell: true}
		})
		run(t, c)
		sender.Wait()
	}
}

func TestUnknownSignalIsIgnored(t *testing.T) {
	t.Parallel()
	c := in(t, executor.Off, `trap 'echo usr1' USR1; echo ready; read x`)
	got := talk(t, c, executor.Input{Signal: "SIGNOPE"}, executor.Input{Signal: "-9"}, executor.Input{Data: []byte("x\n")})
	must.Match(t, result{Out: "ready\n"}, got)
}

func TestWindowSize(t *testing.T) {
	t.Parallel()
	for _, mode := range []executor.Terminal{executor.Split, executor.Single} {
		c := in(t, mode, `stty size; stty size <&2; trap 'stty size; exit' WINCH; echo ready; while :; do :; done`)
		got := talk(t, c, executor.Input{Rows: 50, Cols: 200})
		if diff := cmp.Diff(result{Out: "40 120\n40 120\nready\n50 200\n"}, got); diff != "" {
			t.Errorf("%s: %s", mode, diff)
		}
		c = in(t, mode, `stty size`)
		c.Rows, c.Cols = 3, 4
		expect(t, c, result{Out: "3 4\n"})
	}
}
