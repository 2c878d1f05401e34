//go:build linux

package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/client"
	"github.com/toold/toold/message"
)

func TestCodexRunsACommand(t *testing.T) {
	t.Parallel()
	r := newCodexRig(t)
	c, _ := r.connect(t, "")
	out, code := c.run(r.start("1", "echo one; echo two >&2; pwd; exit 3", nil))
	if out["stdout"] != "one\n"+r.site.workspace+"\n" || out["stderr"] != "two\n" || code != 3 {
		t.Errorf("it printed %q and ended with %d", out, code)
	}
	var read struct {
		Chunks []struct {
			Seq   int
			Chunk []byte
		}
		NextSeq        int
		Exited, Closed bool
		ExitCode       *int
	}
	c.must("process/read", map[string]any{"processId": "1", "afterSeq": nil, "maxBytes": nil, "waitMs": 0}, &read)
	all := ""
	for _, k := range read.Chunks {
		all += string(k.Chunk)
	}
	if !read.Exited || !read.Closed || read.ExitCode == nil || *read.ExitCode != 3 || len(all) != len(out["stdout"])+len(out["stderr"]) {
		t.Errorf("process/read returned %+v, %q", read, all)
	}
	var ended struct{ Running bool }
	c.must("process/terminate", map[string]any{"processId": "1"}, &ended)
	if ended.Running {
		t.Error("it runs after its end")
	}
	agent := r.dial(client.Options{})
	list, err := agent.ListMessages(t.Context(), message.ListMessages{CallID: "call_1", Limit: 10})
	if err != nil || len(list.Messages) == 0 || !strings.Contains(string(list.Messages[0]), "call_1") {
		t.Errorf("the journal has no call_1: %v %s", err, list.Messages)
	}
}

func TestCodexIsRefusedWhatThePolicyDenies(t *testing.T) {
	t.Parallel()
	r := newCodexRig(t)
	c, _ := r.connect(t, "")
	f := c.answer(c.ask("process/start", r.start("1", "touch made; git push origin main", nil)))
	if f.Error == nil || !strings.Contains(f.Error.Message, "no-push") || !strings.Contains(f.Error.Message, "use a branch") {
		t.Errorf("it was answered with %s %+v", f.Result, f.Error)
	}
	r.nothingMade()
}

func TestCodexIsRefusedIDsThatNobodyCanRead(t *testing.T) {
	t.Parallel()
	r := newCodexRig(t)
	c, _ := r.connect(t, "")
	for _, id := range []string{strings.Repeat("i", 257), "a\nb"} {
		as := r.start("1", "touch made", nil)
		as["processId"] = id
		of := r.start("2", "touch made", nil)
		of["metadata"] = map[string]any{"toolCallId": id, "threadId": "t"}
		in := r.start("3", "touch made", nil)
		in["metadata"] = map[string]any{"toolCallId": "c", "threadId": id}
		for _, start := range []map[string]any{as, of, in} {
			if f := c.answer(c.ask("process/start", start)); f.Error == nil || !strings.Contains(f.Error.Message, "at most 256 bytes") {
				t.Errorf("it was answered with %.200s %+v", f.Result, f.Error)
			}
		}
	}
	r.nothingMade()
}

// nothingMade fails the test when a command has made the file "made".
func (r codexRig) nothingMade() {
	r.tb.Helper()
	if _, err := os.Stat(filepath.Join(r.site.workspace, "made")); err == nil {
		r.tb.Error("it ran")
	}
}

func TestCodexWaitsForAPerson(t *testing.T) {
	t.Parallel()
	r := newCodexRig(t)
	c, _ := r.connect(t, "")
	yes := c.ask("process/start", r.start("yes", "mkdir yes", nil))
	no := c.ask("process/start", r.start("no", "mkdir no", nil))
	decided := make(chan error, 2)
	go func() {
		_ = r.approver.Approvals(t.Context(), client.ApprovalEvents{Requested: func(q message.ApprovalRequest) {
			d := client.Decision{ApprovalID: q.ID, Approve: q.ToolCall.ToolCallID == "call_yes", Reason: "make no directories"}
			_, err := r.approver.Decide(t.Context(), d)
			decided <- err
		}})
	}()
	if f := c.answer(yes); f.Error != nil {
		t.Errorf("what a person allowed was refused: %+v", *f.Error)
	}
	if _, code := c.end("yes"); code != 0 {
		t.Errorf("it ended with %d", code)
	}
	if f := c.answer(no); f.Error == nil || !strings.Contains(f.Error.Message, "make no directories") {
		t.Errorf("what a person denied was answered with %s %+v", f.Result, f.Error)
	}
	if err := errors.Join(<-decided, <-decided); err != nil {
		t.Error(err)
	}
}

// Codex would take the changed call for what it asked for.
func TestCodexIsToldWhatAPersonChanged(t *testing.T) {
	t.Parallel()
	r := newCodexRig(t)
	c, _ := r.connect(t, "")
	run := c.ask("process/start", r.start("run", "mkdir made", nil))
	write := c.ask("fs/writeFile", map[string]any{"path": r.uri(".envrc"), "dataBase64": []byte("made"), "sandbox": nil})
	edited, err := json.Marshal(map[string]string{"file_path": filepath.Join(r.site.workspace, "other"), "content": "by hand"})
	if err != nil {
		t.Fatal(err)
	}
	decided := make(chan error, 2)
	go func() {
		_ = r.approver.Approvals(t.Context(), client.ApprovalEvents{Requested: func(q message.ApprovalRequest) {
			d := client.Decision{ApprovalID: q.ID, Approve: true, Arguments: edited}
			if q.ToolCall.ToolCallID == "call_run" {
				d.Arguments = json.RawMessage(`{"command":"echo by hand"}`)
			}
			_, err := r.approver.Decide(t.Context(), d)
			decided <- err
		}})
	}()
	if f := c.answer(run); f.Error != nil {
		t.Fatalf("%+v", *f.Error)
	}
	const changed = "A person changed this call before it ran."
	if out, code := c.end("run"); code != 0 || !strings.Contains(out["stdout"], "by hand") || !strings.Contains(out["stderr"], changed) {
		t.Errorf("it ended with %d and %q", code, out)
	}
	if f := c.answer(write); f.Error == nil || !strings.Contains(f.Error.Message, changed) || !strings.Contains(f.Error.Message, "other") {
		t.Errorf("the write was answered with %s %+v", f.Result, f.Error)
	}
	if text, err := os.ReadFile(filepath.Join(r.site.workspace, "other")); string(text) != "by hand" {
		t.Errorf("the file is %q, %v", text, err)
	}
	if err := errors.Join(<-decided, <-decided); err != nil {
		t.Error(err)
	}
	r.nothingMade()
}

func TestACommandThatWaitsForAPersonNeverRunsOnceCodexHasGone(t *testing.T) {
	t.Parallel()
	r := newCodexRig(t)
	c, _ := r.connect(t, "")
	asked, resolved := make(chan message.ApprovalRequest, 1), make(chan message.ApprovalResolved, 1)
	go func() {
		_ = r.approver.Approvals(t.Context(), client.ApprovalEvents{
			Requested: func(q message.ApprovalRequest) { asked <- q },
			Resolved:  func(q message.ApprovalResolved) { resolved <- q },
		})
	}()
	c.ask("process/start", r.start("1", "mkdir made", nil))
	<-asked
	c.ws.Close()
	if q := <-resolved; q.Approve {
		t.Errorf("it was resolved as %+v", q)
	}
	r.nothingMade()
}

// The end of a connection is noticed whatever waits, and so is a request that never waits.
func TestAFullConnectionOfCodexIsHeard(t *testing.T) {
	t.Parallel()
	r := newCodexRig(t)
	c, _ := r.connect(t, "")
	c.must("process/start", r.start("long", "sleep 1000", nil), nil)
	asked, resolved := make(chan message.ApprovalRequest, 1), make(chan message.ApprovalResolved, 1)
	go func() {
		_ = r.approver.Approvals(t.Context(), client.ApprovalEvents{
			Requested: func(q message.ApprovalRequest) { asked <- q },
			Resolved:  func(q message.ApprovalResolved) { resolved <- q },
		})
	}()
	c.ask("process/start", r.start("asked", "mkdir made", nil))
	<-asked
	const most = 64
	for range most - 1 {
		c.ask("process/read", map[string]any{"processId": "long", "afterSeq": 0, "waitMs": 3_600_000})
	}
	if f := c.answer(c.ask("process/start", r.start("more", "touch made", nil))); f.Error == nil || !strings.Contains(f.Error.Message, "nothing was done") {
		t.Errorf("one request too many was answered with %s %+v", f.Result, f.Error)
	}
	var write struct{ Status string }
	if c.must("process/write", map[string]any{"processId": "long", "chunk": []byte("x"), "writeId": "1"}, &write); write.Status != "stdinClosed" {
		t.Errorf("a write was answered with %q", write.Status)
	}
	c.ws.Close()
	if q := <-resolved; q.Approve {
		t.Errorf("it was resolved as %+v", q)
	}
	r.nothingMade()
}

func TestCodexTypesIntoATerminal(t *testing.T) {
	t.Parallel()
	r := newCodexRig(t)
	c, _ := r.connect(t, "")
	c.must("process/start", r.start("1", "stty -echo; test -t 1 && echo ready; read -r line; echo \"got $line\"; read -r line; echo \"and $line\"; sleep 1000", map[string]any{"tty": true}), nil)
	prints := func(text string) {
		t.Helper()
		all, seq := "", 0
		c.await(func(f codexFrame) bool {
			if f.Method == "process/output" && f.Params.Stream == "pty" && f.Params.Seq > seq {
				all, seq = all+string(f.Params.Chunk), f.Params.Seq
			}
			return strings.Contains(all, text)
		})
	}
	prints("ready")
	var status struct{ Status string }
	write := map[string]any{"processId": "1", "chunk": []byte("one\n"), "writeId": "1"}
	c.must("process/write", write, &status)
	prints("got one")
	c.must("process/write", write, &status) // repeated: it is not typed twice
	if status.Status != "accepted" {
		t.Errorf("a write was answered with %q", status.Status)
	}
	c.must("process/write", map[string]any{"processId": "1", "chunk": []byte("two\n"), "writeId": "2"}, nil)
	prints("and two")
	c.must("process/signal", map[string]any{"processId": "1", "signal": "interrupt"}, nil)
	if _, code := c.end("1"); code != 130 {
		t.Errorf("it ended with %d", code)
	}
	c.must("process/write", map[string]any{"processId": "2", "chunk": []byte("x"), "writeId": "2"}, &status)
	if status.Status != "unknownProcess" {
		t.Errorf("a write to nothing was answered with %q", status.Status)
	}
}

func TestCodexResumesItsSession(t *testing.T) {
	t.Parallel()
	r := newCodexRig(t)
	c, session := r.connect(t, "")
	c.must("process/start", r.start("1", "echo before; read -r line; echo \"after $line\"", map[string]any{"pipeStdin": true}), nil)
	c.await(func(f codexFrame) bool { return f.Method == "process/output" })
	c.ws.Close()
	c, _ = r.connect(t, session)
	var read struct{ Chunks []struct{ Chunk []byte } }
	c.must("process/read", map[string]any{"processId": "1", "afterSeq": 0, "waitMs": 0}, &read)
	if len(read.Chunks) != 1 || string(read.Chunks[0].Chunk) != "before\n" {
		t.Errorf("process/read returned %+v", read)
	}
	c.must("process/write", map[string]any{"processId": "1", "chunk": []byte("all\n"), "writeId": "1"}, nil)
	if out, code := c.end("1"); out["stdout"] != "after all\n" || code != 0 {
		t.Errorf("it printed %q and ended with %d", out, code)
	}
	other, _ := r.connect(t, "")
	if f := other.answer(other.ask("process/read", map[string]any{"processId": "1"})); f.Error == nil {
		t.Error("another session reads its output")
	}
}

func TestConnectionsOfCodexEndNoOtherSession(t *testing.T) {
	t.Parallel()
	r := newCodexRig(t)
	c, session := r.connect(t, "")
	c.must("process/start", r.start("1", "sleep 1000", nil), nil)
	c.ws.Close()
	for range 70 {
		r.connect(t, "")
	}
	c, _ = r.connect(t, session)
	var ended struct{ Running bool }
	if c.must("process/terminate", map[string]any{"processId": "1"}, &ended); !ended.Running {
		t.Error("its command does not run")
	}
}

func TestCodexStopsACommand(t *testing.T) {
	t.Parallel()
	r := newCodexRig(t)
	c, _ := r.connect(t, "")
	c.must("process/start", r.start("1", "sleep 1000", nil), nil)
	var ended struct{ Running bool }
	c.must("process/terminate", map[string]any{"processId": "1"}, &ended)
	if out, code := c.end("1"); !ended.Running || code == 0 {
		t.Errorf("it printed %q and ended with %d", out, code)
	}
}

// The words of a command are no script: one may be a keyword of the shell.
func TestCodexRunsWordsAsTheyAre(t *testing.T) {
	t.Parallel()
	r := newCodexRig(t)
	c, _ := r.connect(t, "")
	if out, code := c.run(r.start("1", "", map[string]any{"argv": []string{"printf", "%s|", "a  b", "$HOME", "it's"}})); out["stdout"] != "a  b|$HOME|it's|" || code != 0 {
		t.Errorf("printf printed %q and ended with %d", out, code)
	}
	if out, code := c.run(r.start("2", "", map[string]any{"argv": []string{"if", "true"}})); code != 127 {
		t.Errorf("a program that is called if printed %q and ended with %d", out, code)
	}
}

// What is not understood does nothing.
func TestCodexIsRefusedWhatTooldDoesNotKnow(t *testing.T) {
	t.Parallel()
	r := newCodexRig(t)
	c, _ := r.connect(t, "")
	for name, params := range map[string]map[string]any{
		"another name":         {"arg0": "sh"},
		"a managed network":    {"enforceManagedNetwork": true},
		"a later parameter":    {"networkProxy": map[string]any{"port": 1}},
		"an unknown rule":      {"sandbox": r.sandboxWith(t, "file_system", "denied_globs", []string{"**/*.pem"})},
		"an unknown limit":     {"sandbox": r.sandboxWith(t, "permissions", "syscalls", "few")},
		"unknown permissions":  {"sandbox": map[string]any{"permissions": map[string]any{"type": "novel"}}},
		"a relative directory": {"cwd": "file:made"},
		"another machine":      {"cwd": "file://elsewhere/tmp"},
		"no command":           {"argv": []string{}},
	} {
		if f := c.answer(c.ask("process/start", r.start(name, "touch made", params))); f.Error == nil {
			t.Errorf("%s was answered with %s", name, f.Result)
		}
	}
	for _, method := range []string{"http/request", "fs/format", "process/startAll"} {
		if f := c.answer(c.ask(method, r.start("x", "touch made", nil))); f.Error == nil || f.Error.Code != -32601 {
			t.Errorf("%s was answered with %s %+v", method, f.Result, f.Error)
		}
	}
	r.nothingMade()
}

func TestCodexNeedsTheTokenOfAnAgent(t *testing.T) {
	t.Parallel()
	r := newCodexRig(t)
	url := strings.TrimSuffix(r.daemon.ws, "/v1/ws") + "/v1/codex"
	for name, header := range map[string]http.Header{
		"none":        nil,
		"a wrong one": {"Authorization": {"Bearer wrong"}},
		"an approver": {"Authorization": {"Bearer " + r.daemon.tokens["approver"]}},
	} {
		if ws, res, err := websocket.DefaultDialer.DialContext(t.Context(), url, header); err == nil {
			ws.Close()
			t.Errorf("%s: %s", name, res.Status)
		}
	}
}

func TestCodexHearsThatAFrameIsTooLarge(t *testing.T) {
	t.Parallel()
	r := newCodexRig(t)
	url := strings.TrimSuffix(r.daemon.ws, "/v1/ws") + "/v1/codex"
	ws, _, err := websocket.DefaultDialer.DialContext(t.Context(), url, http.Header{"Authorization": {"Bearer " + r.daemon.tokens["agent"]}})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	ws.SetCloseHandler(func(int, string) error { return nil }) // without an answer
	sent := make(chan error, 1)
	go func() { sent <- ws.WriteMessage(websocket.TextMessage, make([]byte, 64<<20)) }() // ends with the connection
	ws.SetReadDeadline(time.Now().Add(patience))
	for err == nil {
		_, _, err = ws.ReadMessage()
	}
	if !websocket.IsCloseError(err, websocket.CloseMessageTooBig) {
		t.Fatalf("the connection ended with %v, want 1009", err)
	}
	if err := <-sent; err != nil { // a connection that is closed before loses what was said
		t.Errorf("the rest of the frame is not taken: %v", err)
	}
	if _, err := io.Copy(io.Discard, ws.NetConn()); err != nil {
		t.Errorf("after the close frame: %v, want the end of the connection", err)
	}
}

func TestCodexIsHeardOutWhenTooldStops(t *testing.T) {
	t.Parallel()
	r := newCodexRig(t)
	c, _ := r.connect(t, "")
	c.must("process/start", r.start("1", "echo begun; sleep 1000", nil), nil)
	c.await(func(f codexFrame) bool { return f.Method == "process/output" })
	stopped := make(chan error, 1)
	daemon := r.daemon
	go func() { stopped <- daemon.stop(syscall.SIGTERM) }()
	if _, code := c.end("1"); code == 0 {
		t.Error("a command that was stopped ended well")
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	limit, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var err error
	if r.daemon, err = startDaemon(limit, r.program, r.site); err != nil {
		t.Fatal(err)
	}
}

// Codex may run a command that belongs to no tool call, and another Codex may choose the same process id.
func TestTwoSessionsOfCodexMayUseOneProcessID(t *testing.T) {
	t.Parallel()
	r := newCodexRig(t)
	for range 2 {
		c, _ := r.connect(t, "")
		out, code := c.run(r.start("1", "echo ran", map[string]any{"metadata": nil}))
		if code != 0 || out["stdout"] != "ran\n" {
			t.Errorf("it ended with %d and %q", code, out)
		}
	}
}
