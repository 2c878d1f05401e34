package server

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/internal/metrics"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
)

// measured has a server count what it does.
func measured(o *Options) {
	none := func() int64 { return 0 }
	m := metrics.New(metrics.Source{
		States: o.Dispatch.States, Journal: o.Journal.Bytes, Clients: func() int { return 0 }, Masks: func() int { return 0 },
		Warm: none, Hits: none, Started: none, Ahead: none, Dropped: none,
	})
	o.Dispatch.Observe(m.Seen)
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
		write(t, conn, call("once"))
		until(t, conn, `"tool_return_message"`)
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
	dialAs(t, ts, agentSecret)
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

func BenchmarkCounting(b *testing.B) {
	var seen *dispatch.Call
	var final dispatch.Final
	ts := newLimitedServer(b, policy.Allow, hello, func(*dispatch.Limits, *Options) {}, func(o *Options) {
		o.Dispatch.Observe(func(c *dispatch.Call, event any) {
			if f, ok := event.(dispatch.Final); ok {
				seen, final = c, f
			}
		})
	})
	conn := dialAs(b, ts, agentSecret)
	write(b, conn, call("one"))
	for {
		if _, frame, err := conn.ReadMessage(); err != nil || strings.Contains(string(frame), `"tool_return_message"`) {
			break
		}
	}
	none := func() int64 { return 0 }
	m := metrics.New(metrics.Source{
		States: func() map[message.CallState]int { return nil }, Journal: func() (log, index int64) { return 0, 0 }, Clients: func() int { return 0 }, Masks: func() int { return 0 },
		Warm: none, Hits: none, Started: none, Ahead: none, Dropped: none,
	})
	for b.Loop() {
		m.Seen(seen, final)
	}
}
