package masks_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox/masks"
	"github.com/toold/toold/sandbox/protect"
)

// BenchmarkBeginBesideRenames measures what Begin and End take together, in µs, while another
// program renames directories over and over: all in one directory, in a hundred, or each in
// one of its own.
func BenchmarkBeginBesideRenames(b *testing.B) {
	if _, err := exec.LookPath("perl"); err != nil {
		b.Skip("no perl, which renames without starting a program for each: ", err)
	}
	for _, c := range []struct {
		name                 string
		directories, parents int
	}{{"one-directory", 60_000, 1}, {"hundred-directories", 60_000, 100}, {"own-directories", 30_000, 30_000}} {
		b.Run(c.name, func(b *testing.B) {
			ws := must.Get(filepath.EvalSymlinks(b.TempDir()))(b)
			for i := range c.directories {
				must.Do(b, os.MkdirAll(fmt.Sprint(ws, "/", i%c.parents, "/a", i), 0o755))
			}
			p := must.Get(policy.Compile(policy.Options{Workspace: ws, Home: "/nowhere", Tmp: "/tmp"}, policy.File{}))(b)
			tracker, watcher, err := masks.New(protect.Options{Roots: []string{ws}, Quarantine: b.TempDir()}, p)
			if err != nil {
				b.Fatal(err)
			}
			defer watcher.Close()
			begin := func() time.Duration {
				start := time.Now()
				c, err := watcher.Begin(b.Context(), nil, nil)
				if err != nil {
					b.Fatal(err)
				}
				m, err := tracker.Begin(b.Context(), p, nil, false, func() {})
				if err != nil {
					b.Fatal(err)
				}
				m.End()
				c.End()
				return time.Since(start)
			}
			begin() // waits until all has been read
			busy, err := watcher.Begin(b.Context(), nil, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer busy.End()
			stop := renames(b, ws, c.directories, c.parents)
			defer stop()
			var times []time.Duration
			for b.Loop() {
				times = append(times, begin())
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
		})
	}
}

func renames(b *testing.B, ws string, directories, parents int) (stop func()) {
	b.Helper()
	const program = `$| = 1; $SIG{TERM} = sub { print "$n\n"; exit }; ($f, $t) = ("a", "b"); print "ready\n"; for (;;) { for $i (0..$ARGV[0]) {
		$d = $i % $ARGV[1]; rename "$d/$f$i", "$d/$t$i" or die $!; $n++ } ($f, $t) = ($t, $f) }`
	cmd := exec.Command("perl", "-e", program, fmt.Sprint(directories-1), fmt.Sprint(parents))
	cmd.Dir, cmd.Stderr = ws, os.Stderr
	out := must.Get(cmd.StdoutPipe())(b)
	must.Do(b, cmd.Start())
	lines := bufio.NewScanner(out)
	lines.Scan()
	start := time.Now()
	return func() {
		_ = cmd.Process.Signal(unix.SIGTERM)
		var n float64
		if lines.Scan() {
			_, _ = fmt.Sscan(lines.Text(), &n)
		}
		b.ReportMetric(n/time.Since(start).Seconds(), "renames/s")
		_ = cmd.Wait()
	}
}
