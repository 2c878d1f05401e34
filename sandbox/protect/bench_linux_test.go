package protect_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox/protect"
)

func started(b *testing.B, w *protect.Watcher) *protect.Call {
	c, err := w.Begin(context.Background(), nil, nil) // a cleanup ends some
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// BenchmarkAWorkspaceOf10000Directories prints what the first look costs, and each
// call after it.
func BenchmarkAWorkspaceOf10000Directories(b *testing.B) {
	base := must.Get(filepath.EvalSymlinks(b.TempDir()))(b)
	for i := range 100 {
		for j := range 99 {
			must.Do(b, os.MkdirAll(filepath.Join(base, fmt.Sprint(i), fmt.Sprint(j)), 0o700))
		}
	}
	must.Do(b, os.MkdirAll(filepath.Join(base, ".git/hooks"), 0o700))
	open := func() *protect.Watcher {
		g := must.Get(protect.New(protect.Options{Roots: []string{base}, Names: protected, Quarantine: b.TempDir()}))(b)
		return g
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			g := open()
			started(b, g).End()
			g.Close()
		}
	})
	b.Run("call", func(b *testing.B) {
		g := open()
		defer g.Close()
		started(b, g).End() // waits for the first look
		for b.Loop() {
			started(b, g).End()
		}
	})
}

// BenchmarkTripwire measures how long it takes to make a file under a protected name while a
// call runs, and to have it taken away, in µs.
func BenchmarkTripwire(b *testing.B) {
	base := must.Get(filepath.EvalSymlinks(b.TempDir()))(b)
	g := must.Get(protect.New(protect.Options{Roots: []string{base}, Names: protected, Quarantine: b.TempDir()}))(b)
	defer g.Close()
	run := started(b, g)
	defer run.End()
	path := filepath.Join(base, ".envrc")
	var times []time.Duration
	for b.Loop() {
		begin := time.Now()
		must.Do(b, os.WriteFile(path, []byte("x"), 0o600))
		for {
			if _, err := os.Lstat(path); err != nil {
				break
			}
			runtime.Gosched()
		}
		times = append(times, time.Since(begin))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkCallsBesideRenames measures what Begin and End take together while another call
// renames 60 000 directories over and over, and while it does not, in µs.
func BenchmarkCallsBesideRenames(b *testing.B) {
	base := must.Get(filepath.EvalSymlinks(b.TempDir()))(b)
	const directories = 60_000
	name := func(kind string, i int) string {
		return filepath.Join(base, fmt.Sprint(i%100), fmt.Sprint(kind, i))
	}
	for i := range directories {
		must.Do(b, os.MkdirAll(name("a", i), 0o700))
	}
	w := must.Get(protect.New(protect.Options{Roots: []string{base}, Names: protected, Quarantine: b.TempDir()}))(b)
	defer w.Close()
	started(b, w).End() // waits until all has been read
	measure := func(b *testing.B) {
		var times []time.Duration
		for b.Loop() {
			begin := time.Now()
			started(b, w).End()
			times = append(times, time.Since(begin))
		}
		slices.Sort(times)
		b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
		b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
	}
	busy := started(b, w)
	defer busy.End()
	b.Run("quiet", measure)
	b.Run("renames", func(b *testing.B) {
		stop, done := make(chan struct{}), make(chan struct{})
		// Ends with stop.
		go func() {
			defer close(done)
			for from, to := "a", "b"; ; from, to = to, from {
				for i := range directories {
					select {
					case <-stop:
						return
					default:
					}
					if err := os.Rename(name(from, i), name(to, i)); err != nil {
						b.Error(err)
						return
					}
				}
			}
		}()
		measure(b)
		close(stop)
		<-done
	})
}
