package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/server"
	"github.com/toold/toold/message"
)

// benchClient is a client of a whole daemon in this process, over a real socket.
func benchClient(b *testing.B) *client.Client {
	b.Helper()
	cfg, err := config.Load(config.Options{
		Workspace: b.TempDir(), StateDir: filepath.Join(b.TempDir(), "state"), Listen: "127.0.0.1:0",
		Getenv: func(string) string { return "" },
	})
	if err != nil {
		b.Fatal(err)
	}
	secrets := freshTokens(cfg)
	d, err := newDaemon(b.Context(), cfg, func() ([]server.Token, error) { return secrets, nil }, zap.NewNop())
	if err != nil {
		b.Skipf("this machine cannot confine calls: %v", err)
	}
	served := make(chan error, 1)
	// Ends when the benchmark's context does; Cleanup waits.
	go func() { served <- d.serve(b.Context()) }()
	c, err := client.Dial(b.Context(), client.Options{URL: d.socketURL(), Token: secrets[0].Secret})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close(); <-served })
	return c
}

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
			c := benchClient(b)
			args := map[string]any{"command": "true", "terminal": terminal}
			mustCall(b, c, args, client.Events{})
			var calls, plain time.Duration
			for b.Loop() {
				begin := time.Now()
				mustCall(b, c, args, client.Events{})
				middle := time.Now()
				if _, err := exec.Command("bash", "-c", "true").Output(); err != nil {
					b.Fatal(err)
				}
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
// reads it live.
func BenchmarkLiveOutput(b *testing.B) {
	const size = 32 << 20
	for _, terminal := range []string{"split", "off"} {
		b.Run(terminal, func(b *testing.B) {
			c := benchClient(b)
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
