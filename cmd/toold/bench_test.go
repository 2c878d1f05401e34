package main

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
)

func mustCall(b *testing.B, c *client.Client, args map[string]any, events client.Events) {
	b.Helper()
	ret, err := c.Call(b.Context(), client.Call{Tool: "bash", Arguments: args}, events)
	if err != nil || ret.Status != "success" {
		b.Fatalf("%v %s", err, ret.Result)
	}
}

// BenchmarkCall compares a small sandboxed call, from the client's frame to its
// return, with fork and exec of the same command on a pipe, the two in turn.
func BenchmarkCall(b *testing.B) {
	for _, terminal := range []string{"split", "off"} {
		b.Run(terminal, func(b *testing.B) {
			c := dialDaemon(b, client.Options{})
			args := map[string]any{"command": "true", "terminal": terminal}
			mustCall(b, c, args, client.Events{})
			var calls, plain time.Duration
			for b.Loop() {
				begin := time.Now()
				mustCall(b, c, args, client.Events{})
				middle := time.Now()
				must.Get(exec.Command("bash", "-c", "true").Output())(b)
				calls += middle.Sub(begin)
				plain += time.Since(middle)
			}
			b.ReportMetric(float64(calls.Microseconds())/float64(b.N), "µs/call")
			b.ReportMetric(float64(plain.Microseconds())/float64(b.N), "µs/fork+exec")
			b.ReportMetric(float64(calls)/float64(plain), "x-fork+exec")
		})
	}
}

// BenchmarkLiveOutput measures how fast a command's output reaches a client that
// reads it live, through a terminal and through pipes, as text and as binary.
func BenchmarkLiveOutput(b *testing.B) {
	const size = 32 << 20
	for _, terminal := range []string{"split", "off"} {
		for form, o := range map[string]client.Options{"text": {}, "binary": {Binary: true}} {
			b.Run(terminal+"/"+form, func(b *testing.B) {
				c := dialDaemon(b, o)
				args := map[string]any{"command": fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", size), "terminal": terminal}
				b.SetBytes(size)
				var got, skipped int64
				for b.Loop() {
					mustCall(b, c, args, client.Events{Output: func(d message.OutputDelta, data []byte) {
						got += int64(len(data))
						if d.Gap != nil {
							skipped += d.Gap.To - d.Gap.From
						}
					}})
				}
				if got+skipped != int64(b.N)*size {
					b.Errorf("%d bytes came and %d were skipped of %d", got, skipped, int64(b.N)*size)
				}
				b.ReportMetric(float64(skipped)/float64(got+skipped), "skipped")
			})
		}
	}
}
