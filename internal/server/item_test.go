package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/internal/must"
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
	r := must.Get(http.NewRequestWithContext(t.Context(), method, ts.URL+path, strings.NewReader(body)))(t)
	r.Header.Set("Authorization", "Bearer "+agentSecret)
	res := must.Get(http.DefaultClient.Do(r))(t)
	defer res.Body.Close()
	text := must.Get(io.ReadAll(res.Body))(t)
	return res.StatusCode, string(text)
}

// What an id has named first, it names for ever: one command, several, or others.
func TestAnItemRunsUnderOneIDOnce(t *testing.T) {
	t.Parallel()
	for name, frames := range map[string][]string{
		"several, then one":    {shellCall("sh_1", "one", "two"), shellCall("sh_1", "one")},
		"one, then several":    {shellCall("sh_1", "one"), shellCall("sh_1", "one", "two")},
		"several, then more":   {shellCall("sh_1", "one", "two"), shellCall("sh_1", "one", "two", "three")},
		"several, then fewer":  {shellCall("sh_1", "one", "two", "three"), shellCall("sh_1", "one", "two")},
		"several, then others": {shellCall("sh_1", "one", "two"), shellCall("sh_1", "one", "three")},
		"several, then a part": {shellCall("sh_1", "one", "two"), shellCall("sh_1#2", "two")},
		"a part, then several": {shellCall("sh_1#1", "one"), shellCall("sh_1", "one", "two")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ran atomic.Int32
			ts := newCallServer(t, policy.Allow, func(ctx context.Context, io tools.IO) tools.Result {
				ran.Add(1)
				return hello(ctx, io)
			})
			conn := dialAs(t, ts, agentSecret)
			write(t, conn, frames[0])
			until(t, conn, "shell_call_output")
			once := ran.Load()
			write(t, conn, frames[1])
			until(t, conn, `"duplicate_tool_call"`)
			if status, body := ask(t, ts, "POST", "/v1/calls", frames[1]); status != http.StatusConflict || !strings.Contains(body, "duplicate_tool_call") {
				t.Errorf("over HTTP it was answered by %d %s", status, body)
			}
			write(t, conn, frames[0])
			if again, _ := until(t, conn, "shell_call_output"); !strings.Contains(again, "hello") {
				t.Errorf("the first was answered again by %s", again)
			}
			if n := ran.Load(); n != once {
				t.Errorf("%d commands ran, want %d", n, once)
			}
		})
	}
}

// While the first runs, the journal need not have it.
func TestAnItemAndACallThatRunDoNotShareAnID(t *testing.T) {
	t.Parallel()
	several, one := shellCall("sh_1", "one", "two"), shellCall("sh_1", "one")
	for name, frames := range map[string][]string{"several first": {several, one}, "one first": {one, several}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ts := newCallServer(t, policy.Allow, untilCancelled)
			conn, other := dialAs(t, ts, agentSecret), dialAs(t, ts, agentSecret)
			write(t, conn, frames[0])
			until(t, conn, "tool_started")
			write(t, other, frames[1])
			until(t, other, `"duplicate_tool_call"`)
		})
	}
}

// Two agents may use the same id.
func TestAnItemOfAnotherAgentIsAnother(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Allow, hello)
	conn := dialAs(t, ts, agentSecret)
	for _, frame := range []string{shellCall("sh_1", "one", "two"), strings.Replace(shellCall("sh_1", "one"), `{`, `{"agent_id":"a2",`, 1)} {
		write(t, conn, frame)
		if answer, _ := until(t, conn, "call_output"); !strings.Contains(answer, "hello") {
			t.Errorf("%s was answered by %s", frame, answer)
		}
	}
}

// A cancel, an input or a question about one of them would reach the other.
func TestNoCallHasAnIDThatCannotBeToldFromThatOfAnItem(t *testing.T) {
	t.Parallel()
	const item, plain = "shell_call_output", "tool_return_message"
	for name, c := range map[string]struct{ first, answer, second string }{
		"the item's id":           {shellCall("s", "one", "two"), item, call("s")},
		"a part's id":             {shellCall("s", "one", "two"), item, call("s#2")},
		"no part's yet":           {shellCall("s", "one", "two"), item, call("s#3")},
		"an item at a part's":     {shellCall("s", "one", "two"), item, shellCall("s#2", "one", "two")},
		"an item, the call first": {call("s"), plain, shellCall("s", "one", "two")},
		"a part, the call first":  {call("s#2"), plain, shellCall("s", "one", "two")},
		"a part, an item first":   {shellCall("s#2", "one", "two"), item, shellCall("s", "one", "two")},
		"the first, alike":        {shellCall("s#1", "one", "two"), item, shellCall("s", "one", "two")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ran atomic.Int32
			end, begun := make(chan struct{}), make(chan struct{}, 4)
			ts := newCallServer(t, policy.Allow, func(ctx context.Context, io tools.IO) tools.Result {
				ran.Add(1)
				begun <- struct{}{}
				<-end
				return hello(ctx, io)
			})
			conn, other := dialAs(t, ts, agentSecret), dialAs(t, ts, agentSecret)
			refuses := func(when string) {
				t.Helper()
				write(t, other, c.second)
				if e, _ := until(t, other, `"error_message"`); !strings.Contains(e, "duplicate_tool_call") || !strings.Contains(e, "cannot be told from") {
					t.Errorf("%s: got %s", when, e)
				}
			}
			write(t, conn, c.first)
			<-begun
			refuses("while the first runs")
			close(end)
			until(t, conn, c.answer)
			once := ran.Load()
			refuses("when it has ended")
			write(t, other, `{"message_type":"cancel","tool_call_id":"s"}`)
			until(t, other, "not_running")
			refuses("when the id is cancelled")
			write(t, other, c.first)
			if answer, _ := until(t, other, c.answer); !strings.Contains(answer, "hello") || ran.Load() != once {
				t.Errorf("the first was answered again by %s, and %d calls ran, not %d", answer, ran.Load(), once)
			}
			write(t, other, as("a2", c.second)) // an agent's ids are its own
			until(t, other, map[bool]string{true: item, false: plain}[strings.Contains(c.second, "shell_call")])
		})
	}
}

func TestACallNamedLikeAPartIsAnswered(t *testing.T) {
	t.Parallel()
	for name, frames := range map[string][]string{
		"the item first": {shellCall("sh_1", "one", "two"), shellCall("sh_1#1", "one")},
		"the call first": {shellCall("sh_1#1", "one"), shellCall("sh_1", "one", "two")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end := make(chan struct{})
			ts := newCallServer(t, policy.Allow, func(ctx context.Context, io tools.IO) tools.Result {
				<-end
				return hello(ctx, io)
			})
			conn := dialAs(t, ts, agentSecret)
			write(t, conn, frames...)
			refused, _ := until(t, conn, `"duplicate_tool_call"`)
			close(end)
			answer, _ := until(t, conn, "shell_call_output")
			var first, second struct {
				ID string `json:"call_id"`
			}
			must.Do(t, json.Unmarshal([]byte(frames[0]), &first))
			must.Do(t, json.Unmarshal([]byte(frames[1]), &second))
			if !strings.Contains(refused, `"tool_call_id":"`+second.ID+`"`) || !strings.Contains(answer, `"call_id":"`+first.ID+`"`) {
				t.Errorf("got %s and %s", refused, answer)
			}
		})
	}
}

// The same call in each dialect that can request it.
func inEachDialect() map[string]string {
	return map[string]string{
		`"tool_return_message"`: `{"message_type":"approval_request_message","tool_call":{"tool_call_id":"c1","tool_name":"bash","arguments":{"command":"x","terminal":"off"}}}`,
		`"role":"tool"`:         `{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{\"command\":\"x\",\"terminal\":\"off\"}"}}]}`,
		`"shell_call_output"`:   `{"type":"shell_call","call_id":"c1","action":{"commands":["x"]}}`,
		`"tool_result"`:         `{"type":"tool_use","id":"c1","name":"bash","input":{"command":"x","terminal":"off"}}`,
	}
}

func TestARepeatIsAnsweredInItsOwnDialect(t *testing.T) {
	t.Parallel()
	for want, frame := range inEachDialect() {
		for before, first := range inEachDialect() {
			if before == want {
				continue
			}
			t.Run(before+" then "+want, func(t *testing.T) {
				t.Parallel()
				end := make(chan struct{})
				ts := newCallServer(t, policy.Allow, func(ctx context.Context, io tools.IO) tools.Result {
					io.Started(tools.Started{PID: 1})
					<-end
					return tools.Result{}
				})
				conn, other := dialAs(t, ts, agentSecret), dialAs(t, ts, agentSecret)
				write(t, conn, first)
				until(t, conn, "tool_started")
				write(t, other, frame)
				write(t, conn, frame)
				overHTTP := make(chan string, 1)
				go func() {
					defer close(overHTTP) // also where ask ends the test
					_, body := ask(t, ts, "POST", "/v1/calls", frame)
					overHTTP <- body
				}()
				until(t, other, "tool_started")
				pinged(t, conn)
				close(end)
				until(t, other, want)
				until(t, conn, before)
				until(t, conn, want)
				if body := <-overHTTP; !strings.Contains(body, want) {
					t.Errorf("over HTTP it was answered by %s", body)
				}
				write(t, other, frame) // it has ended
				until(t, other, want)
			})
		}
	}
}

func TestAFaultyCallOfABatchOverHTTPHidesNoneOfTheOthers(t *testing.T) {
	t.Parallel()
	ts := newLimitedServer(t, policy.Allow, hello, func(_ *dispatch.Limits, o *Options) { o.CallsPerConnection = 5 })
	const batch = `{"message_type":"approval_request_message","tool_calls":[{"tool_call_id":"%[1]s1","name":"shout","arguments":"{}"},{"tool_call_id":"","name":"shout","arguments":"{}"},{"tool_call_id":"%[1]s2","name":"shout","arguments":"{}"}]}`
	status, body := ask(t, ts, "POST", "/v1/calls", fmt.Sprintf(batch, "a"))
	var list []struct {
		ID    string `json:"tool_call_id"`
		Type  string `json:"error_type"`
		State string `json:"status"`
	}
	must.Do(t, json.Unmarshal([]byte(body), &list))
	if status != http.StatusOK || len(list) != 3 || list[0].ID != "a1" || list[1].ID != "a2" || list[1].State != "success" || list[2].Type != "missing_tool_call_id" {
		t.Errorf("it was answered by %d %s", status, body)
	}
	one := `{"message_type":"approval_request_message","tool_calls":[{"tool_call_id":"b1","name":"shout","arguments":"{}"},{"name":"shout","arguments":"{}"}]}`
	if status, body := ask(t, ts, "POST", "/v1/calls", one); status != http.StatusOK || !strings.HasPrefix(body, "[") || !strings.Contains(body, "missing_tool_call_id") {
		t.Errorf("one good call was answered by %d %s", status, body)
	}
	if status, body := ask(t, ts, "POST", "/v1/calls", `{"message_type":"approval_request_message","tool_calls":[{"name":"shout","arguments":"{}"}]}`); status != http.StatusBadRequest {
		t.Errorf("no good call was answered by %d %s", status, body)
	}
}

func TestAcceptedHasTheErrorsOfABatch(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Allow, untilCancelled)
	one := `{"message_type":"approval_request_message","tool_calls":[{"tool_call_id":"b1","name":"shout","arguments":"{}"},{"name":"shout","arguments":"{}"}]}`
	if status, body := ask(t, ts, "POST", "/v1/calls?wait=0", one); status != http.StatusAccepted || !strings.Contains(body, `"tool_call_ids":["b1"]`) || !strings.Contains(body, "missing_tool_call_id") {
		t.Errorf("it was answered by %d %s", status, body)
	}
}
