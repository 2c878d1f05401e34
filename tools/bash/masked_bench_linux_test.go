package bash_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/bash"
)

// BenchmarkMasks measures a call of : with so many masks, in a sandbox of its own and in a
// waiting shell. "ratio" is to the same without masks, measured before.
func BenchmarkMasks(b *testing.B) {
	for _, way := range []string{"cold", "warm"} {
		var none float64
		for _, masks := range []int{0, 10, 1000} {
			b.Run(fmt.Sprintf("%s/%d", way, masks), func(b *testing.B) {
				v := newVault(b, fmt.Sprintf("mkdir keys; for ((i = 0; i < %d; i++)); do echo >keys/$i.pem; done", masks))
				if way == "cold" {
					v.tool.Pool = nil
				}
				tool := bash.New(v.tool)
				each := v.time(b, tool)
				if masks == 0 {
					none = each
				}
				b.ReportMetric(each/none, "ratio")
			})
		}
	}
}

// time runs the calls of a benchmark and returns how long one took, in nanoseconds. Between
// them there is time for a shell to start.
func (v *vault) time(b *testing.B, tool tools.Tool) float64 {
	b.Helper()
	var took time.Duration
	for range b.N {
		inv := must.Get(tool.Build(json.RawMessage(`{"command":":"}`)))(b)
		if v.tool.Pool != nil {
			if _, err := executor.ProbePool(b.Context(), executor.Command{Dir: v.ws, Sandbox: v.tool.Profile}); err != nil {
				b.Skip(err)
			}
		}
		begin := time.Now()
		r := inv.Execute(b.Context(), tools.IO{Policy: v.policy})
		took += time.Since(begin)
		if r.Exit == nil || r.Exit.Code != 0 {
			b.Fatal(r.Text)
		}
	}
	each := float64(took.Nanoseconds()) / float64(b.N)
	b.ReportMetric(each/1e3, "us/call")
	return each
}
