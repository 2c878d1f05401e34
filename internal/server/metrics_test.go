package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/internal/metrics"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/internal/trace"
	"github.com/toold/toold/policy"
)

// measured has a server count what it does.
func measured(o *Options) {
	none := func() int64 { return 0 }
	m := metrics.New(metrics.Source{
		States: o.Dispatch.States, Journal: o.Journal.Bytes, Clients: func() int { return 0 }, Masks: func() int { return 0 },
		Warm: none, Hits: none, Started: none, Ahead: none, Failed: none, Dropped: none,
	})
	o.Dispatch.Observe(m.Observe)
	o.Metrics, o.Refused = m, m.Refused
}

// scraped returns the lines of /metrics that begin with a text.
func scraped(t *testing.T, url, prefix string) (lines []string) {
	t.Helper()
	res := get(t, url+"/metrics", map[string]string{"Authorization": "Bearer " + adminSecret})
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s %v: %s", res.Status, err, body)
	}
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, prefix) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func TestAThousandNamesOfToolsAreOneSeries(t *testing.T) {
	t.Parallel()
	const n = 1000
	ts := newLimitedServer(t, policy.Allow, hello, func(l *dispatch.Limits, o *Options) { l.Waiting, o.CallsPerConnection = n+1, n+1 }, measured)
	conn := dialAs(t, ts, agentSecret)
	for i := range n {
		write(t, conn, fmt.Sprintf(`{"message_type":"approval_request_message","agent_id":"agent-%d","tool_call":{"tool_call_id":"c%d","tool_name":"tool-%d","arguments":{}}}`, i, i, i))
	}
	for range n {
		if frame, _ := until(t, conn, `"tool_return_message"`); !strings.Contains(frame, `"unknown_tool"`) {
			t.Fatalf("the return is %s", frame)
		}
	}
	want := fmt.Sprintf(`toold_calls_total{by="none",decision="none",outcome="unknown_tool",tool="other"} %d`, n)
	if lines := scraped(t, ts.URL, "toold_calls_total"); len(lines) != 1 || lines[0] != want {
		t.Errorf("%d series, the first %v; want %s", len(lines), lines[0], want)
	}
	if all := scraped(t, ts.URL, ""); len(all) > 500 {
		t.Errorf("%d lines in all", len(all))
	}
}

func TestARepeatIsNotCountedAsACall(t *testing.T) {
	t.Parallel()
	ts := newLimitedServer(t, policy.Allow, hello, func(*dispatch.Limits, *Options) {}, measured)
	conn := dialAs(t, ts, agentSecret)
	for range 2 {
		made(t, conn, "once")
	}
	if lines := scraped(t, ts.URL, "toold_calls_total"); len(lines) != 1 || !strings.HasSuffix(lines[0], `outcome="success",tool="shout"} 1`) {
		t.Errorf("counted: %v", lines)
	}
	if lines := scraped(t, ts.URL, "toold_replays_total"); len(lines) != 1 || lines[0] != "toold_replays_total 1" {
		t.Errorf("counted: %v", lines)
	}
}

func TestRefusedConnectionsAreCounted(t *testing.T) {
	t.Parallel()
	ts := newLimitedServer(t, policy.Allow, hello, func(*dispatch.Limits, *Options) {}, func(o *Options) { o.Connections = 2 }, measured)
	conn := dialAs(t, ts, agentSecret)
	write(t, conn, `{"message_type":"ping","nonce":"here"}`)
	until(t, conn, "here") // it is counted
	for _, c := range []struct{ why, secret, host, origin string }{
		{why: refusedLimit, secret: agentSecret}, {why: refusedToken}, {why: refusedHost, host: "evil.example"}, {why: refusedOrigin, origin: "https://evil.example"},
	} {
		header := map[string]string{
			"Authorization": "Bearer " + c.secret, "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg==",
		}
		if c.host != "" {
			header["Host"] = c.host
		}
		if c.origin != "" {
			header["Origin"] = c.origin
		}
		res := get(t, ts.URL+"/v1/ws", header)
		if res.StatusCode < 400 {
			t.Errorf("%s: %s", c.why, res.Status)
		}
		want := fmt.Sprintf("toold_refused_requests_total{why=%q} 1", c.why)
		if lines := scraped(t, ts.URL, "toold_refused_requests_total{why=\""+c.why); len(lines) != 1 || lines[0] != want {
			t.Errorf("counted %v, want %s", lines, want)
		}
	}
}

// answered makes one call and returns it with its return, as observers see them.
func answered(t testing.TB) (call1 *dispatch.Call, final dispatch.Final) {
	t.Helper()
	seen := make(chan dispatch.Final, 1)
	ts := newLimitedServer(t, policy.Allow, hello, func(*dispatch.Limits, *Options) {}, func(o *Options) {
		o.Dispatch.Observe(func(c *dispatch.Call, event any) {
			if f, ok := event.(dispatch.Final); ok {
				call1 = c
				seen <- f
			}
		})
	})
	write(t, dialAs(t, ts, agentSecret), call("one"))
	final = <-seen
	return call1, final
}

func TestACollectorThatHangsHoldsUpNothing(t *testing.T) {
	t.Parallel()
	const n = 5000
	c, final := answered(t)
	came, release := make(chan struct{}, n), make(chan struct{})
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		came <- struct{}{}
		<-release
	}))
	defer collector.Close()
	defer close(release)
	failures := make(chan error, n)
	e := must.Get(trace.New(collector.URL+"/v1/traces", "test", func(err error) { failures <- err }))(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan struct{})
	// Ends with ctx.
	go func() { defer close(ended); e.Run(ctx) }()
	e.Observe(c, final)
	<-came // and it waits for an answer
	for range n {
		e.Observe(c, final)
	}
	if e.Dropped() == 0 {
		t.Error("none of the calls was dropped")
	}
	stop()
	<-ended
	if len(failures) != 1 || e.Dropped() != n+1 {
		t.Errorf("%d failures were reported, and %d of %d calls counted as dropped", len(failures), e.Dropped(), n+1)
	}
}

func BenchmarkObserving(b *testing.B) {
	c, final := answered(b)
	none := func() int64 { return 0 }
	m := metrics.New(metrics.Source{
		States: func() map[string]int { return nil }, Journal: func() (log, index int64) { return 0, 0 }, Clients: func() int { return 0 }, Masks: func() int { return 0 },
		Warm: none, Hits: none, Started: none, Ahead: none, Failed: none, Dropped: none,
	})
	e := must.Get(trace.New("http://127.0.0.1:9/v1/traces", "test", func(error) {}))(b)
	for name, seen := range map[string]func(*dispatch.Call, any){"metrics": m.Observe, "traces": e.Observe} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				seen(c, final)
			}
		})
	}
}
