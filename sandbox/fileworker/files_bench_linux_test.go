package fileworker

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
)

// BenchmarkOpen opens a file of the workspace and closes it, in turn with the
// daemon's own rights and through a worker, and prints the medians.
func BenchmarkOpen(b *testing.B) {
	root := must.Get(filepath.EvalSymlinks(b.TempDir()))(b)
	path := filepath.Join(root, "f")
	must.Do(b, os.WriteFile(path, []byte("content"), 0o644))
	var files Pool
	defer files.Close()
	p := sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: root}
	home := must.Get(os.UserHomeDir())(b)
	for i := range 30 { // as many as the default configuration hides, and where
		p.Hide = append(p.Hide, filepath.Join(home, fmt.Sprintf(".hidden-%d", i)))
	}
	ways := []func() (*os.File, error){
		func() (*os.File, error) { return openFile(path) },
		func() (*os.File, error) { f, _, err := files.Open(b.Context(), p, path); return f, err },
	}
	var took [2][]time.Duration
	for b.Loop() {
		for i, open := range ways {
			begin := time.Now()
			f, err := open()
			took[i] = append(took[i], time.Since(begin))
			if err != nil {
				b.Fatal(err)
			}
			f.Close()
		}
	}
	for i, unit := range []string{"direct-µs-p50", "worker-µs-p50"} {
		slices.Sort(took[i])
		b.ReportMetric(float64(took[i][len(took[i])/2].Nanoseconds())/1000, unit)
	}
	b.ReportMetric(float64(took[1][len(took[1])*99/100].Nanoseconds())/1000, "worker-µs-p99")
}
