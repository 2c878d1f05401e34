package server

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

// shellCall is a shell_call of several commands.
func shellCall(id string, commands ...string) string {
	return `{"type":"shell_call","call_id":"` + id + `","action":{"commands":["` + strings.Join(commands, `","`) + `"]}}`
}

// ask sends an agent's HTTP request, and returns its answer.
func ask(t *testing.T, ts *httptest.Server, method, path, body string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, ts.URL+path, strings.NewReader(body))
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+agentSecret)
	res, err := http.DefaultClient.Do(r)
	must(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	must(t, err)
	return res.StatusCode, string(text)
}

// The client is gone when the first command has ended, so that none follows.
func TestACancelledItemDoesNotGoOnWhenItComesAgain(t *testing.T) {
	t.Parallel()
	for _, over := range []string{"websocket", "http"} {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			var ran atomic.Int32
			left := make(chan struct{})
			ts := newCallServer(t, policy.Allow, func(ctx context.Context, io tools.IO) tools.Result {
				ran.Add(1)
				<-left
				return hello(ctx, io)
			})
			conn, item := dialAs(t, ts, agentSecret), shellCall("sh_1", "one", "two", "three")
			if status, body := ask(t, ts, "POST", "/v1/calls?wait=0", item); status != http.StatusAccepted {
				t.Fatalf("the item was answered by %d %s", status, body)
			}
			close(left)
			if status, body := ask(t, ts, "GET", "/v1/calls/sh_1%231", ""); status != http.StatusOK {
				t.Fatalf("the first command was answered by %d %s", status, body)
			}
			write(t, conn, `{"message_type":"cancel","tool_call_id":"sh_1"}`)
			until(t, conn, "not_running")
			for range 2 {
				var answer string
				if over == "http" {
					_, answer = ask(t, ts, "POST", "/v1/calls", item)
				} else {
					write(t, conn, item)
					answer, _ = until(t, conn, "shell_call_output")
				}
				if !strings.Contains(answer, "hello") || !strings.Contains(answer, "the call was cancelled") {
					t.Errorf("the item was answered by %s", answer)
				}
			}
			if n := ran.Load(); n != 1 {
				t.Errorf("%d commands ran", n)
			}
		})
	}
}
