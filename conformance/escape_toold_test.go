//go:build linux

package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/gorilla/websocket"
	"github.com/toold/toold/client"
	"github.com/toold/toold/conformance/suite"
	"github.com/toold/toold/conformance/suite/escape"
	"github.com/toold/toold/message"
)

// escapeTarget is the daemon with what the cases about toold's own settings need.
type escapeTarget struct {
	world    escape.World
	outside  string // the folder beside the workspace
	attack   string // the file where call puts what the policy would see
	events   string // the file of what was decided on connections, a line each
	daemon   *daemon
	approver *conn
	agent    *client.Client
	before   int64 // resident memory of the daemon, bytes
}

func newEscapeTarget(w escape.World) suite.Target {
	at := func(name string) string { return filepath.Join(w.Base, name) }
	return &escapeTarget{world: w, outside: at("out"), attack: at("attack.sh"), events: at("events")}
}

func (t *escapeTarget) Open(ctx context.Context, at suite.Workspace) (suite.Session, error) {
	s, err := t.site(at)
	if err != nil {
		return nil, err
	}
	program := t.world.Programs["toold"]
	launch := filepath.Join(t.world.Base, "launch")
	switch setup := t.world.Case.Setup; {
	case strings.HasPrefix(setup, "outer seccomp denies landlock"):
		s.launch = &launcher{dir: launch, how: "exec " + suite.Quote(t.world.Programs["e"]) + " without-landlock " + suite.Quote(filepath.Join(launch, "toold"))}
	case strings.Contains(setup, " with 1024 descriptors"):
		s.launch = &launcher{dir: launch, how: "ulimit -n 1024 && exec toold"}
	}
	if t.daemon, err = startDaemon(ctx, program, s); err != nil {
		return nil, &suite.Refusal{Exit: refusal(program, s), Err: err}
	}
	if err := t.connect(ctx); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (t *escapeTarget) connect(ctx context.Context) (err error) {
	answer := approve
	switch {
	case t.world.Case.ByName():
		answer = approveOneHost
	case widens(t.world.Case):
		answer = t.approveWidened
	}
	if t.approver, err = dial(ctx, t.daemon, "(approver)", 0, t.daemon.tokens["approver"], answer, func() {}); err != nil {
		return err
	}
	if err := greet(ctx, t.approver); err != nil {
		return err
	}
	t.agent, err = client.Dial(ctx, client.Options{URL: t.daemon.ws, Token: t.daemon.tokens["agent"]})
	return err
}

// refusal is the exit status of a daemon that does not start.
func refusal(program string, s *site) int {
	cmd, err := s.command(program)
	if err == nil {
		err = cmd.Run()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// Run runs what comes before the case. What the daemon needs for that is not counted.
func (t *escapeTarget) Run(ctx context.Context, c suite.Command) (suite.Result, error) {
	result, err := t.Call(ctx, suite.Call{Tool: "bash", Arguments: map[string]any{"command": c.Script}})
	resetPeak(t.daemon.pid)
	t.before = memory(t.daemon.pid, "VmRSS")
	return result, err
}

// Call makes a call. What the policy refuses because it can see it is done again by
// a program into which it cannot see: the question is what the sandbox holds.
func (t *escapeTarget) Call(ctx context.Context, c suite.Call) (suite.Result, error) {
	events := client.Events{Contact: t.noteContact, Output: func(_ message.OutputDelta, data []byte) {
		if c.Live != nil {
			c.Live(data)
		}
	}}
	call := client.Call{Tool: c.Tool, Arguments: c.Arguments, ConversationID: c.Conversation}
	ret, err := t.agent.Call(ctx, call, events)
	if err == nil && c.Tool == "bash" && ret.Decision != nil && ret.Decision.Action == "deny" {
		if err := os.WriteFile(t.attack, []byte(c.Arguments["command"].(string)+"\n"), 0o644); err != nil {
			return suite.Result{}, err
		}
		c.Arguments["command"], call.ConversationID = "exec bash "+t.attack, ""
		ret, err = t.agent.Call(ctx, call, events)
	}
	if err == nil && c.Arguments["background"] != nil && ret.Status != "success" {
		err = fmt.Errorf("%.300s", ret.Result)
	}
	return t.result(ret), err
}

func (t *escapeTarget) result(ret message.ToolReturn) suite.Result {
	r := suite.Result{
		Stdout: stream(ret.Stdout), Stderr: stream(ret.Stderr), Text: ret.Result, Exit: -1, TimedOut: ret.TimedOut || ret.Cause != nil,
		Vars: map[string]string{"STATUS": ret.Status},
	}
	if ret.ExitCode != nil {
		r.Exit = *ret.ExitCode
	}
	if ret.Signal != nil {
		r.Signal = *ret.Signal
	}
	if peak := memory(t.daemon.pid, "VmHWM"); peak > t.before {
		r.Vars["GROWTH"] = fmt.Sprint(peak - t.before)
	}
	r.Return, _ = json.Marshal(ret)
	return r
}

// Scene is what may explain a failure.
func (t *escapeTarget) Scene() string { return t.daemon.diagnostics() }

// Close ends the daemon; the world ends everything else.
func (t *escapeTarget) Close() error {
	if t.agent != nil {
		t.agent.Close()
	}
	if t.approver != nil {
		t.approver.close()
	}
	return t.daemon.stop(syscall.SIGTERM)
}

// noteContact writes down a decision on a connection for the scripts.
func (t *escapeTarget) noteContact(d message.ConnectionDecision) {
	line, _ := json.Marshal(d)
	f, err := os.OpenFile(t.events, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer f.Close()
	f.Write(append(line, '\n'))
}

// widenedMark, in a script, has the person who says yes to it let it write in @OUT@.
const widenedMark = "# widened"

// widens reports whether a person adds to the sandbox of a call of the case.
func widens(c escape.Case) bool {
	return strings.Contains(c.Command, widenedMark) || strings.Contains(c.Beside, widenedMark)
}

// approveWidened says yes to every call, and adds to the sandbox of those that are marked.
func (t *escapeTarget) approveWidened(c *conn, kind int, data []byte) {
	if !bytes.Contains(data, []byte(widenedMark)) {
		approve(c, kind, data)
		return
	}
	var request struct {
		Type string `json:"message_type"`
		ID   string `json:"id"`
	}
	if json.Unmarshal(data, &request) != nil || request.Type != "approval_request_message" {
		return
	}
	answer, _ := json.Marshal(map[string]any{
		"message_type": "approval_response_message", "approve": true, "approval_request_id": request.ID,
		"widen": map[string]any{"write": t.outside},
	})
	c.send(websocket.TextMessage, answer)
}
