package executor_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
)

type merged struct {
	all     bytes.Buffer
	streams [2]bytes.Buffer
}

type mergedStream struct {
	to     *merged
	stream int
}

func (w mergedStream) Write(p []byte) (int, error) {
	w.to.all.Write(p)
	return w.to.streams[w.stream].Write(p)
}

// alternating scripts number their lines over both streams, in the order in which
// they write them.
var alternating = []struct{ name, program, script string }{
	{"few", "bash", `echo 1; echo 2 >&2; echo 3; echo 4 >&2; echo 5; echo 6 >&2; echo 7; echo 8 >&2`},
	{"builtins", "bash", `for ((i = 1; i <= 4000; i += 2)); do echo $i; echo $((i + 1)) >&2; done`},
	{"python", "python3", `python3 -u -c '
import sys
for i in range(1, 4001, 2):
    print(i)
    print(i + 1, file=sys.stderr)'`},
	{"make", "make", `make -s -j1`},
}

// makefile has a test that fails, with its complaint between two lines on standard output.
const makefile = "all: build test\nbuild:\n\t@echo 1\n\t@echo 2\ntest:\n\t@echo 3; echo 4; echo 5 >&2; echo 6; exit 1\n"

func merge(t testing.TB, pool *executor.Pool, c executor.Command) (*merged, executor.Exit) {
	t.Helper()
	var m merged
	c.Stdout, c.Stderr = mergedStream{&m, 0}, mergedStream{&m, 1}
	e := must.Get(pool.Run(t.Context(), c))(t)
	return &m, e
}

// misordered runs a script and reports whether its merged view differs from the
// order in which the script wrote, and whether that order is said to be exact.
func misordered(t testing.TB, pool *executor.Pool, mode executor.Terminal, script string) (view string, wrong, exact bool) {
	t.Helper()
	c := in(t, mode, script)
	must.Do(t, os.WriteFile(filepath.Join(c.Dir, "Makefile"), []byte(makefile), 0o600))
	m, e := merge(t, pool, c)
	lines := strings.Split(strings.TrimSuffix(m.all.String(), "\n"), "\n")
	for i, line := range lines {
		if line != fmt.Sprint(i+1) && !strings.HasPrefix(line, "make:") {
			return strings.Join(lines[max(0, i-5):min(i+5, len(lines))], " "), true, e.Exact
		}
	}
	return "", false, e.Exact
}

// On a busy machine a report may come so late that the order is a guess, and then it is not
// said to be exact.
func TestLinesOfBothStreamsComeInTheOrderOfTheirWrites(t *testing.T) {
	must.Long(t)
	t.Parallel()
	const runs = 3
	for _, mode := range []executor.Terminal{executor.Split, executor.Off} {
		for _, a := range alternating {
			t.Run(a.name+"/"+mode.String(), func(t *testing.T) {
				t.Parallel()
				requireProgram(t, a.program)
				pool := executor.NewPool(1, nil)
				defer pool.Close()
				right := 0
				for n := 0; n < runs || right == 0 && n < 10*runs; n++ {
					view, wrong, exact := misordered(t, pool, mode, a.script)
					if wrong && exact {
						t.Errorf("misordered, and said to be exact: … %s …", view)
					}
					if !wrong {
						right++
					}
				}
				if right == 0 {
					t.Error("misordered each time")
				}
			})
		}
	}
}

// TestStressOrder demands the order of many runs: a number that is for .ci/stress.
func TestStressOrder(t *testing.T) {
	runs, err := strconv.Atoi(os.Getenv("TOOLD_STRESS_ORDER"))
	if err != nil {
		t.Skip("TOOLD_STRESS_ORDER is the number of runs")
	}
	requireNamespaces(t)
	for _, mode := range []executor.Terminal{executor.Split, executor.Off} {
		for _, a := range alternating {
			t.Run(a.name+"/"+mode.String(), func(t *testing.T) {
				requireProgram(t, a.program)
				pool := executor.NewPool(1, nil)
				defer pool.Close()
				count := 0
				for range runs {
					if view, wrong, _ := misordered(t, pool, mode, a.script); wrong {
						t.Errorf("misordered: … %s …", view)
						count++
					}
				}
				t.Logf("%d of %d runs are misordered", count, runs)
			})
		}
	}
}

// On a busy machine a report may come so late that the order is not certain: an exact one is
// found in one of several runs.
func TestTheOrderOfLinesIsSaidToBeExactOnlyWhereItIs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, script string
		mode         executor.Terminal
		want         bool
	}{
		{"one stream", `printf 'a\nb\nc'`, executor.Split, true},
		{"streams that alternate", alternating[0].script, executor.Split, true},
		{"streams that alternate on pipes", alternating[0].script, executor.Off, true},
		{"one terminal for both", alternating[0].script, executor.Single, true},
		{"the terminal by its other name", `echo a; echo b >/dev/tty; echo c >&2`, executor.Split, false},
		{"only the terminal by its other name", `echo b >/dev/tty`, executor.Split, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			exact := false
			for try := 0; try < 20 && !exact; try++ {
				_, e := merge(t, nil, in(t, test.mode, test.script))
				exact = e.Exact
			}
			if exact != test.want {
				t.Errorf("Exact is %v in one of 20 runs, want %v", exact, test.want)
			}
		})
	}
}

// What a program prints without a line end, as a prompt, appears while it runs.
func TestAnUnfinishedLineAppearsAndBreaksNoOther(t *testing.T) {
	t.Parallel()
	for _, mode := range []executor.Terminal{executor.Split, executor.Off} {
		c := in(t, mode, `echo warning >&2; printf 'Name: '; read -r name; echo "hello $name"`)
		c.Stdin = true
		input := make(chan executor.Input)
		prompt := listenFor("Name: ")
		c.Stdout, c.Input = prompt, input
		var typist sync.WaitGroup
		// Ends when the prompt has come or the test is over.
		typist.Go(func() {
			defer close(input)
			select {
			case <-prompt.come:
				input <- executor.Input{Data: []byte("you\n")}
			case <-t.Context().Done():
			}
		})
		must.Get(executor.Run(t.Context(), c))(t)
		typist.Wait()
		if got := prompt.String(); got != "Name: hello you\n" {
			t.Errorf("%v: got %q", mode, got)
		}
	}
}

// Two processes print pieces of lines at the same time. A line whose writer paused may be
// broken, and a busy machine pauses everyone: such runs are repeated.
func TestNoLineIsBrokenByTheOtherStream(t *testing.T) {
	t.Parallel()
	for _, mode := range []executor.Terminal{executor.Split, executor.Off} {
		runs := 20
		for ; runs > 0; runs-- {
			broken, paused := pieces(t, mode)
			if broken == "" {
				break
			}
			if !paused {
				t.Fatalf("%v: a line is %q", mode, broken)
			}
		}
		if runs == 0 {
			t.Skipf("%v: this machine paused a writer in each of 20 runs", mode)
		}
	}
}

// pieces prints lines in pieces on both streams at once. It returns the first line that
// is broken in the merged view, and whether a writer paused between two pieces for as
// long as the merger waits for the second.
func pieces(t *testing.T, mode executor.Terminal) (broken string, paused bool) {
	t.Helper()
	const wait = 20_000 // microseconds
	c := in(t, mode, `
		print() {
			longest=0
			for i in {1..500}; do
				a=$EPOCHREALTIME
				printf "$1"; printf "$2\n"
				b=$EPOCHREALTIME
				pause=$((${b/./} - ${a/./}))
				if ((pause > longest)); then longest=$pause; fi
			done
			echo $longest >"$1"
		}
		print out put &
		print com plaint >&2
		wait`)
	m, _ := merge(t, nil, c)
	if m.streams[0].String() != strings.Repeat("output\n", 500) || m.streams[1].String() != strings.Repeat("complaint\n", 500) {
		t.Errorf("%v: the streams have %d and %d bytes", mode, m.streams[0].Len(), m.streams[1].Len())
	}
	for _, name := range []string{"out", "com"} {
		text := must.Get(os.ReadFile(filepath.Join(c.Dir, name)))(t)
		longest := must.Get(strconv.Atoi(strings.TrimSpace(string(text))))(t)
		paused = paused || longest >= wait
	}
	for line := range strings.SplitAfterSeq(m.all.String(), "\n") {
		if line != "output\n" && line != "complaint\n" && line != "" {
			return line, paused
		}
	}
	return "", paused
}

// BenchmarkOrder measures the share of runs whose merged view is misordered.
func BenchmarkOrder(b *testing.B) {
	requireNamespaces(b)
	for _, mode := range []executor.Terminal{executor.Split, executor.Off} {
		for _, a := range alternating {
			b.Run(a.name+"/"+mode.String(), func(b *testing.B) {
				count := 0
				for b.Loop() {
					if view, wrong, _ := misordered(b, nil, mode, a.script); wrong {
						b.Logf("misordered: … %s …", view)
						count++
					}
				}
				b.ReportMetric(100*float64(count)/float64(b.N), "%misordered")
			})
		}
	}
}
