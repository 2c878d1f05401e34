//go:build linux

package conformance

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/client"
	"github.com/toold/toold/message"
)

// asker is a rig whose policy asks about `touch`, and its people.
type asker struct {
	*rig
	agent, person *client.Client
	asked         chan message.ApprovalRequest
}

func newAsker(t *testing.T, settings map[string]any) *asker {
	t.Helper()
	a := &asker{rig: newRig(t, settings)}
	rules, err := policyText(setup{Default: "allow", Policy: json.RawMessage(`[{"ask": "bash touch *"}]`)})
	if err == nil {
		err = os.WriteFile(filepath.Join(filepath.Dir(a.site.config), "policy.yaml"), rules, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	a.end(syscall.SIGTERM)
	return a
}

// end ends the daemon and starts the next one, with an approver who notes the questions.
func (a *asker) end(signal syscall.Signal) {
	a.tb.Helper()
	if err := a.daemon.stop(signal); err != nil {
		a.tb.Error(err)
	}
	limit, cancel := context.WithTimeout(a.tb.Context(), patience)
	defer cancel()
	var err error
	if a.daemon, err = startDaemon(limit, a.program, a.site); err != nil {
		a.tb.Fatal(err)
	}
	a.agent = a.dial(client.Options{})
	if a.person, err = client.Dial(limit, client.Options{URL: a.daemon.ws, Token: a.daemon.tokens["approver"]}); err != nil {
		a.tb.Fatal(err)
	}
	a.asked = make(chan message.ApprovalRequest, 10)
	// Ends with the connection.
	go a.person.Approvals(a.tb.Context(), client.ApprovalEvents{Requested: func(q message.ApprovalRequest) { a.asked <- q }})
	if _, err := a.person.ListApprovals(limit); err != nil { // from now on it is connected
		a.tb.Fatal(err)
	}
}

// TestAQuestionOutlivesTheDaemon: the next daemon asks it again, and the client that comes
// back gets the one return of its call.
func TestAQuestionOutlivesTheDaemon(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAsker(t, nil)
			call := client.Call{ID: "call_1", Tool: "bash", Arguments: map[string]any{"command": "touch made; echo ran >>effects", "terminal": "off"}}
			lost := make(chan error)
			agent := a.agent
			go func() {
				_, err := agent.Call(t.Context(), call, client.Events{})
				lost <- err
			}()
			first := <-a.asked
			a.end(signal)
			if err := <-lost; err == nil {
				t.Error("the call has a return before the restart")
			}
			again := <-a.asked
			if again.ID != first.ID || again.CallID != "call_1" || again.Preview.Text != first.Preview.Text || again.Rule != first.Rule {
				t.Errorf("asked again is %+v, first was %+v", again, first)
			}
			if list, err := a.person.ListApprovals(t.Context()); err != nil || len(list) != 1 || list[0].ID != first.ID {
				t.Errorf("waiting are %+v, %v", list, err)
			}
			if _, err := a.person.Decide(t.Context(), client.Decision{ApprovalID: first.ID, Approve: true}); err != nil {
				t.Error(err)
			}
			ret := httpReturn(t, a.daemon, "GET", "/v1/calls/call_1?wait=60000", nil)
			repeat, err := a.agent.Call(t.Context(), call, client.Events{})
			if err != nil || ret.ID != repeat.ID || !repeat.Replayed || ret.Status != "success" || ret.Decision.By != "person" {
				t.Errorf("over HTTP it is %+v, repeated %+v, %v", ret, repeat, err)
			}
			if text, err := os.ReadFile(filepath.Join(a.site.workspace, "effects")); err != nil || string(text) != "ran\n" {
				t.Errorf("it did %q, %v", text, err)
			}
		})
	}
}

// httpReturn makes a request that is answered by a return.
func httpReturn(t *testing.T, d *daemon, method, path string, body []byte) (ret message.ToolReturn) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, d.http+path, strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+d.tokens["agent"])
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&ret); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("%s %s: %s, %v", method, path, response.Status, err)
	}
	return ret
}

// TestARequestOverHTTPIsAcceptedWhenTheDaemonStops: the call waits on for the next daemon.
func TestARequestOverHTTPIsAcceptedWhenTheDaemonStops(t *testing.T) {
	t.Parallel()
	a := newAsker(t, nil)
	r, err := http.NewRequestWithContext(t.Context(), "POST", a.daemon.http+"/v1/calls?wait=300000", strings.NewReader(
		`{"message_type":"approval_request_message","tool_call":{"tool_call_id":"call_1","tool_name":"bash","arguments":{"command":"touch made"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+a.daemon.tokens["agent"])
	answer := make(chan string)
	go func() {
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			answer <- err.Error()
			return
		}
		response.Body.Close()
		answer <- response.Status
	}()
	<-a.asked
	a.end(syscall.SIGTERM)
	if got := <-answer; got != "202 Accepted" {
		t.Errorf("the request was answered with %s", got)
	}
	if _, err := a.person.Decide(t.Context(), client.Decision{ApprovalID: (<-a.asked).ID, Approve: true}); err != nil {
		t.Error(err)
	}
	if ret := httpReturn(t, a.daemon, "GET", "/v1/calls/call_1?wait=60000", nil); ret.Status != "success" {
		t.Errorf("it returned %+v", ret)
	}
}

// TestABackgroundCallOfAKilledDaemonHasEnded: the frame of its end, the tools of the model
// and the list say so.
func TestABackgroundCallOfAKilledDaemonHasEnded(t *testing.T) {
	t.Parallel()
	a := newAsker(t, nil)
	ret, err := a.agent.Call(t.Context(), client.Call{ID: "call_1", Tool: "bash", Arguments: map[string]any{
		"command": "echo began; sleep 1000", "background": true, "terminal": "off",
	}}, client.Events{})
	if err != nil || ret.Background == nil {
		t.Fatalf("got %+v, %v", ret, err)
	}
	id := ret.Background.CallID
	for printed := false; !printed; {
		r, err := a.agent.Call(t.Context(), client.Call{Tool: "bash_output", Arguments: map[string]any{"call_id": id, "offset": 0, "wait": 1000}}, client.Events{})
		if err != nil {
			t.Fatal(err)
		}
		printed = strings.Contains(r.Result, "began")
	}
	a.end(syscall.SIGKILL)
	told := make(chan message.BackgroundEnded, 1)
	// Ends with the connection.
	go a.agent.BackgroundEnds(t.Context(), func(e message.BackgroundEnded) { told <- e })
	for tool, want := range map[string]string{"bash_output": id + " ended: unknown_after_crash", "list_calls": id + " ended (unknown_after_crash)", "bash_kill": "had ended already"} {
		arguments := map[string]any{"call_id": id}
		if tool == "list_calls" {
			arguments = map[string]any{"all": true}
		}
		if r, err := a.agent.Call(t.Context(), client.Call{Tool: tool, Arguments: arguments}, client.Events{}); err != nil || !strings.Contains(r.Result, want) {
			t.Errorf("%s: %q, %v; want %q", tool, r.Result, err, want)
		}
	}
	if e := <-told; e.CallID != id || e.ErrorType == nil || *e.ErrorType != message.UnknownAfterCrash {
		t.Errorf("its end is %+v", e)
	}
	list, err := a.agent.ListCalls(t.Context(), "", true)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if c.CallID == id && (c.State != message.CallEnded || c.ErrorType == nil || *c.ErrorType != message.UnknownAfterCrash) {
			t.Errorf("it is listed as %+v", c)
		}
	}
}
