package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
)

// startDaemon runs a whole daemon in this process until the test's context ends,
// and returns where it is and the agent's token.
func startDaemon(tb testing.TB) (url, secret string) {
	tb.Helper()
	needsSandbox(tb)
	cfg := must.Get(config.Load(config.Options{
		Workspace: tb.TempDir(), StateDir: filepath.Join(tb.TempDir(), "state"), Listen: "127.0.0.1:0",
		Getenv: func(string) string { return "" },
	}))(tb)
	secrets := daemon.FreshTokens(cfg)
	d := must.Get(daemon.New(tb.Context(), daemon.Options{Config: cfg, Tokens: secrets, Log: zap.NewNop()}))(tb)
	served := make(chan error, 1)
	// Ends when the test's context does; Cleanup waits.
	go func() { served <- d.Serve(tb.Context()) }()
	tb.Cleanup(func() { <-served })
	return d.URL(), secrets[0].Secret
}

func dialDaemon(tb testing.TB, o client.Options) *client.Client {
	tb.Helper()
	o.URL, o.Token = startDaemon(tb)
	c := must.Get(client.Dial(tb.Context(), o))(tb)
	tb.Cleanup(func() { c.Close() })
	return c
}

// TestBothFormsOfLiveOutputCarryTheSameBytes compares text and binary frames:
// every byte once, in order, both streams.
func TestBothFormsOfLiveOutputCarryTheSameBytes(t *testing.T) {
	for name, o := range map[string]client.Options{"text": {}, "binary": {Binary: true}} {
		t.Run(name, func(t *testing.T) {
			c := dialDaemon(t, o)
			var out, errs strings.Builder
			var ended int64
			ret, err := c.Call(t.Context(), client.Call{Tool: "bash", Arguments: map[string]any{
				"command": `printf 'caf\303\251 \377\n'; seq 1 3000; echo problem >&2`,
			}}, client.Events{Output: func(d message.OutputDelta, data []byte) {
				if d.Stream == "stderr" {
					errs.Write(data)
					return
				}
				if d.Offset != ended || d.Gap != nil {
					t.Errorf("a piece at %d follows the end at %d", d.Offset, ended)
				}
				ended = d.Offset + int64(len(data))
				out.Write(data)
			}})
			if err != nil || ret.Status != "success" {
				t.Fatalf("%v %+v", err, ret)
			}
			if !strings.HasPrefix(out.String(), "caf\xc3\xa9 \xff\n1\n") || !strings.HasSuffix(out.String(), "\n3000\n") || ended != ret.StdoutBytes {
				t.Errorf("%d of %d bytes came: %.40q", ended, ret.StdoutBytes, out.String())
			}
			if errs.String() != "problem\n" {
				t.Errorf("stderr was %q", errs.String())
			}
		})
	}
}

// TestLiveOutputComesInTheOrderOfTheWrites also asks for the record of both streams.
func TestLiveOutputComesInTheOrderOfTheWrites(t *testing.T) {
	for name, o := range map[string]client.Options{"text": {}, "binary": {Binary: true}} {
		t.Run(name, func(t *testing.T) {
			c := dialDaemon(t, o)
			var live, want strings.Builder
			for i := range 600 {
				fmt.Fprintln(&want, i)
			}
			ret := must.Get(c.Call(t.Context(), client.Call{ID: "call-1", Tool: "bash", Arguments: map[string]any{
				"command": `for ((i = 0; i < 600; i += 2)); do echo $i; echo $((i + 1)) >&2; done`,
			}}, client.Events{Output: func(_ message.OutputDelta, data []byte) { live.Write(data) }}))(t)
			_, both, err := c.GetOutput(t.Context(), message.GetOutput{CallID: "call-1", Stream: "combined"})
			if err != nil {
				t.Fatal(err)
			}
			for what, got := range map[string]string{"live output": live.String(), "result": ret.Result, "combined": string(both)} {
				if got != want.String() {
					t.Errorf("the %s is out of order", what)
				}
			}
			if ret.Order != "exact" {
				t.Errorf("order is %q", ret.Order)
			}
		})
	}
}
