//go:build linux

package conformance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/toold/toold/client"
	"github.com/toold/toold/message"
)

// BenchmarkCallsBesideRenames is a small call beside one that renames directories of a
// workspace of 60 000 over and over, laid beside one while it pauses: in turn, so that what
// else the machine does burdens both. They are in one directory, in a hundred, or each in one
// of its own. The renames need a processor, which costs any program something: that is the
// ratio of the floor.
func BenchmarkCallsBesideRenames(b *testing.B) {
	if _, err := exec.LookPath("perl"); err != nil {
		b.Skip("no perl, which renames without starting a program for each: ", err)
	}
	const rename = `exec perl -e '$| = 1; ($f, $t) = ("a", "b"); print "ready\n"; for (;;) { for $i (0..%d) {
		while ($i %% 100 == 0 && -e "pause") { select(undef, undef, undef, 0.01) }
		$d = $i %% %d; rename "$d/$f$i", "$d/$t$i" or die $! } ($f, $t) = ($t, $f) }'`
	for _, c := range []struct {
		name                 string
		directories, parents int
	}{{"one-directory", 60_000, 1}, {"hundred-directories", 60_000, 100}, {"own-directories", 30_000, 30_000}} {
		b.Run(c.name, func(b *testing.B) {
			r := newRig(b, nil)
			for i := range c.directories {
				if err := os.MkdirAll(filepath.Join(r.site.workspace, fmt.Sprint(i%c.parents), fmt.Sprint("a", i)), 0o755); err != nil {
					b.Fatal(err)
				}
			}
			agent := r.dial(client.Options{})
			ready, ended := make(chan struct{}, 1), make(chan struct{})
			events := client.Events{Output: func(message.OutputDelta, []byte) { ready <- struct{}{} }}
			arguments := map[string]any{"command": fmt.Sprintf(rename, c.directories-1, c.parents), "terminal": "off", "timeout": 600_000}
			// Ends when the call is cancelled below.
			go func() {
				defer close(ended)
				ret, err := agent.Call(b.Context(), client.Call{ID: "renames", Tool: "bash", Arguments: arguments}, events)
				if err != nil || ret.Cause == nil || *ret.Cause != message.ByCancel {
					b.Errorf("the renames ended: %v %.300s", err, ret.Result)
				}
			}()
			<-ready
			pause := filepath.Join(r.site.workspace, "pause")
			var alone, beside samples
			take := func(s *samples) {
				for range 3 {
					r.oneCall(agent) // until the change has come through
				}
				for range 10 {
					s.ours = append(s.ours, r.oneCall(agent))
					s.floor = append(s.floor, floor(b))
				}
			}
			for b.Loop() {
				if err := os.WriteFile(pause, nil, 0o600); err != nil {
					b.Fatal(err)
				}
				take(&alone)
				if err := os.Remove(pause); err != nil {
					b.Fatal(err)
				}
				take(&beside)
			}
			if err := agent.Cancel("renames", ""); err != nil {
				b.Error(err)
			}
			<-ended
			ms := func(s []time.Duration, p float64) float64 { return float64(percentile(s, p).Microseconds()) / 1000 }
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(ms(alone.ours, 0.5), "ms-p50-alone")
			b.ReportMetric(ms(beside.ours, 0.5), "ms-p50-beside")
			b.ReportMetric(ms(beside.ours, 0.9), "ms-p90-beside")
			b.ReportMetric(ms(beside.ours, 0.5)/ms(alone.ours, 0.5), "x-alone")
			b.ReportMetric(ms(beside.floor, 0.5)/ms(alone.floor, 0.5), "x-alone-floor")
		})
	}
}
