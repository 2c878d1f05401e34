package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/internal/workspaces"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/argument"
)

// shout is a tool that prints what its test says. What is tested here is what
// clients see of a call, not what runs.
type shout struct {
	name string // "": shout
	run  func(context.Context, tools.IO) tools.Result
	does policy.Effect

	background bool
}

func (s *shout) Definition() tools.Definition {
	return tools.Definition{Name: cmp.Or(s.name, "shout"), Description: "for tests", Parameters: json.RawMessage(`{"type":"object"}`)}
}

func (s *shout) Build(args json.RawMessage) (tools.Invocation, error) {
	if strings.Contains(string(args), "bad") {
		return nil, &argument.Error{Field: "bad", Problem: "it is bad"}
	}
	return &shout{run: s.run, does: s.does, background: strings.Contains(string(args), "background")}, nil
}

func (s *shout) Traits() tools.Traits { return tools.Traits{Background: s.background} }

func (s *shout) Effects() []policy.Effect { return []policy.Effect{s.does} }
func (s *shout) Text() string             { return "shout" }

func (s *shout) Prepare(context.Context, tools.IO) {}
func (s *shout) Drop()                             {}

func (s *shout) Execute(ctx context.Context, io tools.IO) tools.Result {
	if err := io.Starting("1 1 x"); err != nil {
		return tools.Result{Text: err.Error(), Failure: tools.Internal}
	}
	return s.run(ctx, io)
}

// hello prints a line and ends.
func hello(_ context.Context, io tools.IO) tools.Result {
	io.Started(tools.Started{PID: 1, Terminal: "split"})
	io.Output(tools.Stdout, []byte("hello\n"))
	return tools.Result{}
}

// Agents that share a connection may use the same id: what is sent about a call says whose it is.
func TestWhatIsSentAboutACallNamesItsAgent(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Allow, hello)
	conn := dialAs(t, ts, agentSecret)
	for repeat := range 2 {
		write(t, conn, call("call_1"))
		write(t, conn, strings.Replace(call("call_1"), "{", `{"agent_id":"a",`, 1))
		got := map[string]int{}
		for returns := 0; returns < 2; {
			frame := read(t, conn)
			var f struct {
				Type   string `json:"message_type"`
				CallID string `json:"tool_call_id"`
				Agent  string `json:"agent_id"`
			}
			must.Do(t, json.Unmarshal([]byte(frame), &f))
			if f.CallID != "call_1" || f.Agent == "" && strings.Contains(frame, "agent_id") {
				t.Errorf("got %s", frame)
			}
			got[f.Type+" "+f.Agent]++
			if f.Type == "tool_return_message" {
				returns++
			}
		}
		for _, agent := range []string{"", "a"} {
			for _, kind := range []string{"policy_decision", "tool_started", "tool_output_delta", "tool_return_message"} {
				if n := got[kind+" "+agent]; n != 1 && (repeat == 0 || kind == "tool_return_message") {
					t.Errorf("%d %s of agent %q came, not one: %v", n, kind, agent, got)
				}
			}
		}
	}
	write(t, conn, strings.Replace(strings.Replace(call("call_1"), "{", `{"agent_id":"a",`, 1), `"arguments":{`, `"arguments":{"other":1`, 1))
	if e, _ := until(t, conn, `"error_message"`); !strings.Contains(e, `"duplicate_tool_call"`) || !strings.Contains(e, `"agent_id":"a"`) {
		t.Errorf("got %s", e)
	}
}

const (
	approverSecret = "approver-secret-approver-secret-approver"
	adminSecret    = "admin-secret-admin-secret-admin-secret-a"
)

// newCallServer returns a server with everything real but the tool, under a
// policy that gives the tool's effect the action.
func newCallServer(t testing.TB, action policy.Action, run func(context.Context, tools.IO) tools.Result) *httptest.Server {
	t.Helper()
	return newLimitedServer(t, action, run, func(*dispatch.Limits, *Options) {})
}

// newLimitedServer is newCallServer with limits of the test's own.
func newLimitedServer(t testing.TB, action policy.Action, run func(context.Context, tools.IO) tools.Result, change func(*dispatch.Limits, *Options), more ...func(*Options)) *httptest.Server {
	t.Helper()
	j, err := journal.Open(t.Context(), t.TempDir(), journal.Self())
	rules, err2 := policy.Compile(policy.Options{Workspace: "/nowhere", Home: "/home/nobody", Tmp: "/tmp"}, policy.File{
		Name: "test", Defaults: policy.Defaults{Read: action, Net: policy.Ask},
	})
	does := policy.Effect{Kind: policy.Read, Path: "/nowhere/x", Canonical: "/nowhere/x"}
	registry, err3 := tools.NewRegistry(&shout{run: run, does: does}, &shout{name: "bash", run: run, does: does})
	must.Do(t, errors.Join(err, err2, err3))
	t.Cleanup(func() { j.Close() })
	approvals := approval.New[message.ApprovalRequest]()
	limits := dispatch.Limits{
		Concurrent: 4, PerConnection: 4, Waiting: 8, Background: 2, BackgroundEach: 2,
		ReturnBytes: 30000, SpoolBytes: 64 << 20, Linger: time.Hour, ApprovalTimeout: time.Hour, AskedHosts: 2,
	}
	options := Options{CallsPerConnection: 2}
	change(&limits, &options)
	calls := dispatch.New(dispatch.Options{
		Registry: registry, Workspaces: only{dispatch.NewWorkspace(dispatch.WorkspaceOptions{Root: "/nowhere", Registry: registry, Policy: rules})}, Approvals: approvals, Journal: j, Log: zap.NewNop(), SpoolDir: t.TempDir(),
		Kill: func(string) (bool, error) { return false, nil }, Limits: limits,
	})
	t.Cleanup(func() { calls.Shutdown(context.Background()) })
	_, ts := newTestServer(t, func(o *Options) {
		o.Dispatch, o.Approvals, o.Journal = calls, approvals, j
		o.CallsPerConnection = options.CallsPerConnection
		o.Tokens = also(o.Tokens, Token{Name: "approver", Secret: approverSecret, Roles: []Role{Approver, Observer}}, Token{Name: "owner", Secret: adminSecret, Roles: []Role{Admin}})
		for _, change := range more {
			change(o)
		}
	})
	return ts
}

// only is all workspaces of a test.
type only struct{ *dispatch.Workspace }

func (o only) Use(_ context.Context, dir string) (*dispatch.Workspace, func(), error) {
	if dir == "/unregistered" {
		return nil, nil, &workspaces.UnregisteredError{Dir: dir}
	}
	return o.Workspace, func() {}, nil
}

func dialAs(t testing.TB, ts *httptest.Server, secret string) *websocket.Conn {
	t.Helper()
	conn, _, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(ts.URL, "http")+"/v1/ws",
		http.Header{"Authorization": {"Bearer " + secret}})
	must.Do(t, err)
	t.Cleanup(func() { conn.Close() })
	conn.SetReadDeadline(time.Now().Add(5 * time.Minute)) // a guard against a frame that never comes
	return conn
}

func write(t testing.TB, conn *websocket.Conn, frames ...string) {
	t.Helper()
	for _, f := range frames {
		must.Do(t, conn.WriteMessage(websocket.TextMessage, []byte(f)))
	}
}

func call(id string) string {
	return `{"message_type":"approval_request_message","tool_call":{"tool_call_id":"` + id + `","tool_name":"shout","arguments":{}}}`
}

// until returns the first frame that holds the text, and all that came before it.
func until(t *testing.T, conn *websocket.Conn, text string) (frame string, before []string) {
	t.Helper()
	for {
		frame := read(t, conn)
		if strings.Contains(frame, text) {
			return frame, before
		}
		before = append(before, frame)
	}
}

// made makes a call and returns its return.
func made(t *testing.T, conn *websocket.Conn, id string) string {
	t.Helper()
	write(t, conn, call(id))
	ret, _ := until(t, conn, "tool_return_message")
	return ret
}

// pinged returns when all that was written to the server before has been handled.
func pinged(t *testing.T, conn *websocket.Conn) {
	t.Helper()
	nonce := message.NewID("")
	write(t, conn, `{"message_type":"ping","nonce":"`+nonce+`"}`)
	until(t, conn, nonce)
}

// questionID returns the id of the next question.
func questionID(t *testing.T, approver *websocket.Conn) string {
	t.Helper()
	frame, _ := until(t, approver, `"approval_request_message"`)
	_, rest, _ := strings.Cut(frame, `"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

// untilCancelled is a command that runs until it is stopped.
func untilCancelled(ctx context.Context, io tools.IO) tools.Result {
	io.Started(tools.Started{PID: 1})
	<-ctx.Done()
	return tools.Result{IsError: true, Failure: tools.Cancelled}
}

func TestASilentClientGetsNoLiveOutput(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Allow, hello)
	conn := dialAs(t, ts, agentSecret)
	write(t, conn, `{"message_type":"hello","protocol":1,"output":"none"}`, call("call_1"))
	_, before := until(t, conn, "tool_return_message")
	if all := strings.Join(before, "\n"); strings.Contains(all, "tool_output_delta") {
		t.Errorf("there is live output:\n%s", all)
	}
}

func TestASlowReaderLosesOutputAndNeverTheReturn(t *testing.T) {
	t.Parallel()
	printed := make(chan struct{})
	ts := newCallServer(t, policy.Allow, func(_ context.Context, io tools.IO) tools.Result {
		io.Started(tools.Started{PID: 1})
		line := []byte(strings.Repeat("x", 64<<10))
		for range 512 { // 32 MiB, far beyond the outbox of 1 MiB and what sockets hold
			io.Output(tools.Stdout, line)
		}
		close(printed)
		return tools.Result{}
	})
	conn := dialAs(t, ts, agentSecret)
	write(t, conn, call("call_1"))
	<-printed // though nothing has been read
	ret, before := until(t, conn, "tool_return_message")
	if !strings.Contains(ret, `"stdout_bytes":33554432`) {
		t.Errorf("the return is %.300s", ret)
	}
	var end, lost int64
	for _, frame := range before {
		var d message.OutputDelta
		if err := json.Unmarshal([]byte(frame), &d); err != nil || d.MessageType != "tool_output_delta" {
			continue
		}
		if d.Offset != end && (d.Gap == nil || d.Gap.From != end || d.Gap.To != d.Offset) {
			t.Fatalf("output goes from %d to %d with the gap %+v", end, d.Offset, d.Gap)
		}
		lost += d.Offset - end
		end = d.Offset + int64(len(d.Data))
	}
	if end != 32<<20 || lost == 0 {
		t.Errorf("live output ends at %d with %d bytes lost, want the end of 32 MiB and a gap", end, lost)
	}
	write(t, conn, `{"message_type":"get_output","request_id":"q1","tool_call_id":"call_1","stream":"stdout","offset":5000000,"limit":10}`)
	if out, _ := until(t, conn, `"output"`); !strings.Contains(out, `"data":"xxxxxxxxxx"`) {
		t.Errorf("what was lost is not to be had: %s", out)
	}
}

// A client may read nothing while it writes, so that the server is in the middle of a frame.
func TestAFrameOverTheLimitIsRefusedBehindMuchOutput(t *testing.T) {
	must.Long(t)
	t.Parallel()
	ended := make(chan struct{})
	ts := newLimitedServer(t, policy.Allow, func(ctx context.Context, io tools.IO) tools.Result {
		defer close(ended)
		io.Started(tools.Started{PID: 1})
		line := []byte(strings.Repeat("x", 64<<10))
		for range 512 { // 32 MiB, far beyond what sockets hold
			io.Output(tools.Stdout, line)
		}
		return tools.Result{}
	}, func(*dispatch.Limits, *Options) {}, func(o *Options) { o.MaxFrameBytes, o.OutboxBytes = 8<<20, 64<<20 })
	conn := dialAs(t, ts, agentSecret)
	write(t, conn, call("call_1"))
	<-ended                                     // though nothing has been read
	write(t, conn, strings.Repeat("x", 32<<20)) // and this is read only by a server that goes on to read
	if e, _ := until(t, conn, "limits.max_frame_bytes"); !strings.Contains(e, `"invalid_frame"`) {
		t.Errorf("it was answered by %.300s", e)
	}
	for {
		_, _, err := conn.ReadMessage()
		if websocket.IsCloseError(err, websocket.CloseMessageTooBig) {
			break
		}
		if err != nil {
			t.Fatalf("the connection ended with %v, want 1009", err)
		}
	}
}

func TestAnApproverDecidesAndTheAgentDoesNot(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Ask, hello)
	person, agent := dialAs(t, ts, approverSecret), dialAs(t, ts, agentSecret)
	pinged(t, person)
	yes := `{"message_type":"approval_response_message","approvals":[{"type":"approval","tool_call_id":"call_1","approve":true,"reason":"go on"}]}`
	write(t, agent, call("call_1"))
	asked, _ := until(t, person, "approval_request_message")
	if !strings.Contains(asked, `"preview":{"text":"shout"`) {
		t.Errorf("the question is %s", asked)
	}
	write(t, agent, yes)
	until(t, agent, "not_authorized")
	write(t, person, strings.Replace(yes, `"approvals"`, `"remember":"session","approvals"`, 1))
	until(t, person, "remember must be once, conversation, command, prefix or rule")
	write(t, person, `{"message_type":"list_approvals","request_id":"q1"}`)
	if list, _ := until(t, person, `"approvals"`); !strings.Contains(list, "call_1") {
		t.Errorf("the call does not wait any more: %s", list)
	}
	write(t, person, yes)
	until(t, person, `"approval_resolved"`)
	if ret, _ := until(t, agent, "tool_return_message"); !strings.Contains(ret, `"by":"person"`) {
		t.Errorf("the return is %s", ret)
	}
	write(t, person, yes)
	until(t, person, "approval_not_pending")
}

// Whoever may stop every call may say no, and yes too: an admin that is connected is asked.
func TestAnAdminDecides(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Ask, hello)
	owner, agent := dialAs(t, ts, adminSecret), dialAs(t, ts, agentSecret)
	pinged(t, owner)
	for id, approve := range map[string]bool{"call_1": true, "call_2": false} {
		write(t, agent, call(id))
		until(t, owner, "approval_request_message")
		write(t, owner, fmt.Sprintf(`{"message_type":"approval_response_message","approvals":[{"tool_call_id":%q,"approve":%v}]}`, id, approve))
		until(t, owner, `"approval_resolved"`)
		ret, _ := until(t, agent, "tool_return_message")
		if !strings.Contains(ret, `"person":"owner"`) || strings.Contains(ret, `"denied"`) == approve {
			t.Errorf("%s: the return is %s", id, ret)
		}
	}
}

func TestACancelledCallIsAnsweredAndLateFramesAreToo(t *testing.T) {
	t.Parallel()
	took := make(chan tools.Input, 1)
	ts := newCallServer(t, policy.Allow, func(ctx context.Context, io tools.IO) tools.Result {
		io.Started(tools.Started{PID: 1})
		took <- <-io.Input
		<-ctx.Done()
		return tools.Result{IsError: true, Failure: tools.Cancelled}
	})
	conn := dialAs(t, ts, agentSecret)
	write(t, conn, call("call_1"))
	until(t, conn, "tool_started")
	write(t, conn, `{"message_type":"tool_input","tool_call_id":"call_1","data":"abc","resize":null}`)
	if in := <-took; string(in.Data) != "abc" {
		t.Errorf("the command got %q", in.Data)
	}
	write(t, conn, `{"message_type":"cancel","tool_call_id":"call_1"}`)
	if ret, _ := until(t, conn, "tool_return_message"); !strings.Contains(ret, `"error_type":"cancelled"`) {
		t.Errorf("the return is %s", ret)
	}
	for _, late := range []string{
		`{"message_type":"tool_input","tool_call_id":"call_2","data":"abc"}`,
		`{"message_type":"cancel","tool_call_id":"call_2"}`,
	} {
		write(t, conn, late)
		until(t, conn, "not_running")
	}
}

func TestTooManyCallsOfAConnectionAreRefused(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Allow, untilCancelled)
	conn := dialAs(t, ts, agentSecret)
	write(t, conn, call("call_1"), call("call_2"), call("call_3"))
	ret, _ := until(t, conn, "tool_return_message")
	if !strings.Contains(ret, `"too_many_calls"`) || !strings.Contains(ret, "call_3") {
		t.Errorf("the return is %s", ret)
	}
	write(t, conn, `{"message_type":"cancel","all":true}`)
	until(t, conn, "tool_return_message")
	until(t, conn, "tool_return_message")
}

func TestTheRecordIsReadOverBothTransports(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Allow, hello)
	conn := dialAs(t, ts, agentSecret)
	made(t, conn, "call_1")
	write(t, conn, `{"message_type":"list_messages","request_id":"q1","tool_call_id":"call_1"}`)
	if page, _ := until(t, conn, `"messages"`); !strings.Contains(page, `"status":"success"`) {
		t.Errorf("the page is %s", page)
	}
	write(t, conn, `{"message_type":"list_messages","request_id":"q2","before":"message-none"}`)
	until(t, conn, "not_found")
	write(t, conn, `{"message_type":"get_output","request_id":"q3","tool_call_id":"nosuch"}`)
	until(t, conn, "not_found")
	write(t, conn, `{"message_type":"explain_policy","request_id":"q4","call":{"tool_call_id":"x","tool_name":"shout","arguments":{}}}`)
	if e, _ := until(t, conn, "policy_explanation"); !strings.Contains(e, `"action":"allow"`) {
		t.Errorf("the explanation is %s", e)
	}
	write(t, conn, `{"message_type":"explain_policy","request_id":"q5","call":{"tool_call_id":"x","tool_name":"shout","arguments":{"bad":1}}}`)
	until(t, conn, "it is bad")

	token := map[string]string{"Authorization": "Bearer " + approverSecret}
	for query, want := range map[string]int{
		"?limit=1&order=asc&message_types=tool_return_message": http.StatusOK,
		"?limit=0":             http.StatusBadRequest,
		"?order=up":            http.StatusBadRequest,
		"?before=message-none": http.StatusNotFound,
	} {
		if res := get(t, ts.URL+"/v1/messages"+query, token); res.StatusCode != want {
			t.Errorf("GET /v1/messages%s: %s, want %d", query, res.Status, want)
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if res := get(t, ts.URL+path, nil); res.StatusCode != http.StatusOK {
			t.Errorf("GET %s: %s", path, res.Status)
		}
	}
}

// Another connection knows a shell_call by its own id, as the model does.
func TestAShellCallIsReachedFromAnotherConnection(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Allow, func(ctx context.Context, io tools.IO) tools.Result {
		io.Output(tools.Stdout, []byte("running"))
		io.Started(tools.Started{})
		<-ctx.Done()
		return tools.Result{IsError: true, Failure: tools.Cancelled}
	})
	conn, other := dialAs(t, ts, agentSecret), dialAs(t, ts, agentSecret)
	write(t, conn, `{"type":"shell_call","call_id":"sh_1","action":{"commands":["one","two"]}}`)
	until(t, conn, "tool_started")
	for _, id := range []string{"sh_1", "sh_1#1"} {
		write(t, other, `{"message_type":"get_output","request_id":"`+id+`","tool_call_id":"`+id+`"}`)
		if frame, _ := until(t, other, `"request_id":"`+id+`"`); !strings.Contains(frame, `"running"`) {
			t.Errorf("the output of %s: %s", id, frame)
		}
	}
	write(t, other, `{"message_type":"cancel","tool_call_id":"sh_1"}`)
	frame, _ := until(t, conn, "shell_call_output")
	if !strings.Contains(frame, "not run, since command 1 did not run to its end") {
		t.Errorf("it ended with %s", frame)
	}
}
