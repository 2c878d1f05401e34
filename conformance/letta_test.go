//go:build linux

package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/client"
	"github.com/toold/toold/message"
)

// lettaCode is a stock App Server of Letta Code, a user who is connected to it, and
// `toold letta` between it and a daemon.
type lettaCode struct {
	*agentRig
	*testing.T
	url     string
	runtime map[string]any
	ws      *websocket.Conn
	asked   int

	mu     sync.Mutex
	frames []map[string]any
	more   chan struct{}
}

func newLetta(t *testing.T) *lettaCode {
	t.Helper()
	r := serveLetta(t)
	r.bridge(r.url, r.runtime)
	return r
}

// serveLetta starts all but the bridge.
func serveLetta(t *testing.T) *lettaCode {
	t.Helper()
	program := skipWithout(t, "TOOLD_LETTA", "the program letta (Letta Code 0.32.18 was tried)")
	r := &lettaCode{agentRig: newAgentRig(t), T: t, more: make(chan struct{})}
	r.serve(program)
	r.connect()
	r.runtime = r.begin(map[string]any{"create_agent": map[string]any{"body": map[string]any{"name": "t", "model": "lmstudio/fake-model"}, "memfs": false}})
	return r
}

func (r *lettaCode) call(s deed) (move, string) {
	switch {
	case s.follow:
		return move{"bash_output", map[string]any{"call_id": "$", "wait": 5000}}, ""
	case s.subagent, s.await:
		return move{}, "a subagent of Letta Code is a program of its own, which toold letta does not see: TestStockLettaCodeStartsSubagents"
	case s.background != "":
		return move{"bash", map[string]any{"command": s.background, "background": true}}, ""
	case s.edit != nil && s.edit.from == "":
		return move{"write_file", map[string]any{"file_path": s.edit.name, "content": s.edit.to}}, ""
	case s.edit != nil:
		return move{"edit_file", map[string]any{"file_path": s.edit.name, "old_string": s.edit.from, "new_string": s.edit.to}}, ""
	}
	return move{"bash", map[string]any{"command": s.run}}, ""
}

func (r *lettaCode) lost() (killed, without []string) {
	return []string{"toold was lost", "toold show"}, []string{"nothing ran"}
}

func (r *lettaCode) play(t *testing.T, interrupt <-chan struct{}) {
	t.Helper()
	r.T = t
	from := r.say(r.runtime)
	if interrupt != nil {
		<-interrupt
		if a := r.ask(map[string]any{"type": "abort_message", "runtime": r.runtime}); a["aborted"] != true {
			t.Fatalf("abort_message was answered with %v", a)
		}
		begun := time.Now()
		defer func() { t.Logf("the turn ended %v after it was aborted", time.Since(begun).Round(time.Millisecond)) }()
	}
	r.end(from, r.runtime)
}

// serve starts the App Server.
func (r *lettaCode) serve(program string) {
	r.Helper()
	r.url = "ws://127.0.0.1:" + reservePort(r.T)
	home := r.TempDir()
	server := exec.Command(program, "server", "--listen", r.url, "--backend", "local")
	server.Dir = r.site.workspace
	r.hook(home)
	backend := "LETTA_LOCAL_BACKEND_DIR=" + filepath.Join(home, "backend")
	r.Cleanup(func() { killHaving(backend) }) // its subagents have process groups of their own
	server.Env = environment(home, backend, "LETTA_CODE_TELEM=0", "DISABLE_AUTOUPDATER=1", "LMSTUDIO_BASE_URL="+r.model.URL+"/v1")
	startProgram(r.T, server)
}

// hook has Letta Code start the hook of toold, as docs/connect.md says.
func (r *lettaCode) hook(home string) {
	settings, err := json.Marshal(map[string]any{"hooks": map[string]any{"PreToolUse": []any{map[string]any{
		"matcher": "*", "hooks": []any{map[string]any{"type": "command", "command": strings.Join(r.command(), " ") + " hook letta", "timeout": 600_000}},
	}}}})
	err = errors.Join(err, os.Mkdir(filepath.Join(home, ".letta"), 0o700), os.WriteFile(filepath.Join(home, ".letta", "settings.json"), settings, 0o600))
	if err != nil {
		r.Fatal(err)
	}
}

// startProgram runs a program until the test ends, with all that it starts. log has what it
// prints.
func startProgram(t *testing.T, cmd *exec.Cmd) (log string) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = file, file, &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
		if text, err := os.ReadFile(file.Name()); err == nil && t.Failed() {
			t.Logf("%s printed:\n%s", filepath.Base(cmd.Path), text)
		}
		file.Close()
	})
	return file.Name()
}

// killHaving ends all processes that have an entry in their environment.
func killHaving(entry string) {
	for found := true; found; runtime.Gosched() {
		found = false
		list, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, name := range list {
			text, err := os.ReadFile(name)
			if err != nil || !slices.Contains(strings.Split(string(text), "\x00"), entry) {
				continue
			}
			found = true
			if pid, err := strconv.Atoi(strings.Split(name, "/")[2]); err == nil {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// bridge starts `toold letta` for conversations of an agent and waits until they have toold's
// tools.
func (r *lettaCode) bridge(url string, runtimes ...map[string]any) {
	r.Helper()
	args := append(r.command()[1:], "letta", "--url", url, "-C", r.site.workspace, "--agent", fmt.Sprint(runtimes[0]["agent_id"]))
	for _, of := range runtimes {
		args = append(args, "--conversation", fmt.Sprint(of["conversation_id"]))
	}
	cmd := exec.Command(r.program, args...)
	cmd.Env = []string{"HOME=" + r.site.home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	log := startProgram(r.T, cmd)
	eventually(r.T, "the conversations have the tools of toold", func() bool {
		text, err := os.ReadFile(log)
		return err == nil && strings.Count(string(text), "connected to Letta Code") == len(runtimes)
	})
}

func (r *lettaCode) connect() {
	r.Helper()
	eventually(r.T, "the App Server listens", func() bool {
		var err error
		r.ws, _, err = websocket.DefaultDialer.DialContext(r.Context(), r.url+"/ws", nil)
		return err == nil
	})
	read := make(chan struct{})
	go func() { defer close(read); r.read() }()
	r.Cleanup(func() { r.ws.Close(); <-read })
}

// begin begins a conversation of an agent.
func (r *lettaCode) begin(of map[string]any) (runtime map[string]any) {
	r.Helper()
	f := map[string]any{
		"type": "runtime_start", "create_conversation": map[string]any{}, "cwd": r.site.workspace, "mode": "standard",
		"client_info": map[string]any{"name": "t", "version": "1"},
	}
	for name, value := range of {
		f[name] = value
	}
	started := r.ask(f)
	runtime, ok := started["runtime"].(map[string]any)
	if !ok {
		r.Fatalf("runtime_start was answered with %v", started)
	}
	return runtime
}

func (r *lettaCode) read() {
	for {
		var f map[string]any
		err := r.ws.ReadJSON(&f)
		r.mu.Lock()
		if err == nil {
			r.frames = append(r.frames, f)
		}
		close(r.more)
		r.more = make(chan struct{})
		r.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// await returns the first frame from an index on that is wanted.
func (r *lettaCode) await(from int, wanted func(map[string]any) bool) map[string]any {
	r.Helper()
	for {
		r.mu.Lock()
		frames, more := r.frames, r.more
		r.mu.Unlock()
		for ; from < len(frames); from++ {
			if wanted(frames[from]) {
				return frames[from]
			}
		}
		select {
		case <-more:
		case <-time.After(patience):
			last, _ := json.Marshal(frames[max(0, len(frames)-5):])
			r.Fatalf("what is awaited did not come; the last frames are %.3000s", last)
		}
	}
}

func (r *lettaCode) send(f map[string]any) {
	r.Helper()
	if err := r.ws.WriteJSON(f); err != nil {
		r.Fatal(err)
	}
}

// ask sends a request and returns its response.
func (r *lettaCode) ask(f map[string]any) map[string]any {
	r.Helper()
	r.asked++
	id := fmt.Sprintf("test-%d", r.asked)
	f["request_id"] = id
	r.send(f)
	return r.await(0, func(f map[string]any) bool { return f["request_id"] == id })
}

// say has the user say something. It returns from where on frames are about it.
func (r *lettaCode) say(to map[string]any) (from int) {
	r.Helper()
	r.mu.Lock()
	from = len(r.frames)
	r.mu.Unlock()
	r.asked++
	id := fmt.Sprintf("m%d", r.asked)
	r.send(map[string]any{"type": "input", "request_id": "in-" + id, "runtime": to, "payload": map[string]any{
		"kind": "create_message", "client_message_id": id,
		"messages": []any{map[string]any{"role": "user", "content": "go on", "client_message_id": id, "otid": id}},
	}})
	return from
}

// end waits for the end of a turn.
func (r *lettaCode) end(from int, of map[string]any) {
	r.Helper()
	r.await(from, func(f map[string]any) bool {
		about, _ := f["runtime"].(map[string]any)
		return f["type"] == "turn_finished" && about["conversation_id"] == of["conversation_id"]
	})
}

// lettaOwn is a command in a tool that Letta Code has itself.
func lettaOwn(script string) move {
	return move{"Bash", map[string]any{"command": script, "description": "d"}}
}

// The tools that Letta Code has itself run only where toold allows it.
func TestToolsOfLettaCodeRunOnlyWhereTooldAllows(t *testing.T) {
	t.Parallel()
	r := newLetta(t)
	r.person(t)
	r.write(t, ".env", "SECRET\n")
	r.model.script([]move{
		{"Read", map[string]any{"file_path": r.file(".env")}},
		lettaOwn("cat .env"), lettaOwn("git push origin x; touch made"), lettaOwn("mkdir made"),
		lettaOwn("echo by itself"),
		{"Write", map[string]any{"file_path": r.file(".env"), "content": "x"}},
	}, nil)
	r.play(t, nil)
	r.model.expect(t, []string{"secrets"}, []string{"secrets"}, []string{"no-push"}, []string{"make no directories"}, []string{"by itself"}, []string{"secrets"})
	r.nothingMade()
	if err := r.daemon.stop(syscall.SIGKILL); err != nil {
		t.Log(err)
	}
	r.model.script([]move{lettaOwn("touch made")}, nil)
	r.play(t, nil)
	r.model.expect(t, []string{"toold cannot be reached"})
	r.nothingMade()
}

// A subagent of Letta Code is a program of its own in the mode unrestricted. The policy
// decides whether it starts; what it does only the hook can hold.
func TestStockLettaCodeStartsSubagents(t *testing.T) {
	t.Parallel()
	r := newLetta(t)
	r.person(t)
	r.model.script([]move{{"Agent", map[string]any{"description": "d", "prompt": subagent, "subagent_type": "general-purpose", "run_in_background": false}}},
		[]move{lettaOwn("echo from the subagent"), lettaOwn("touch made; git push origin main")})
	r.play(t, nil)
	eventually(t, "the subagent ends", func() bool { _, text := r.model.saw(true, 2); return text != "" })
	r.model.contains(t, true, 1, []string{"from the subagent"})
	r.model.contains(t, true, 2, []string{"no-push"})
	r.nothingMade()
	id, _ := r.model.saw(true, 2)
	r.recorded(t, id)
}

// Conversations are served at once. When the connection to the App Server is lost, what
// waits for a person goes on to wait.
func TestStockLettaCodeHasConversationsAndLosesItsConnection(t *testing.T) {
	t.Parallel()
	r := serveLetta(t)
	other := r.begin(map[string]any{"agent_id": r.runtime["agent_id"]})
	url, cut := cuttable(t, r.url)
	r.bridge(url, r.runtime, other)
	meet := func(mine, others string) move {
		return move{"bash", map[string]any{"command": "touch " + mine + "; until test -e " + others + "; do sleep 0.1; done; echo both ran"}}
	}
	r.model.script([]move{meet("a", "b"), meet("b", "a")}, nil)
	from := r.say(r.runtime)
	r.say(other)
	r.end(from, r.runtime)
	r.end(from, other)
	r.model.expect(t, []string{"both ran"}, []string{"both ran"})

	asked := make(chan message.ApprovalRequest, 8)
	go r.approver.Approvals(t.Context(), client.ApprovalEvents{Requested: func(q message.ApprovalRequest) { asked <- q }})
	r.model.script([]move{lettaOwn("mkdir yes && echo it is there")}, nil)
	from = r.say(r.runtime)
	question := <-asked
	cut()
	if _, err := r.approver.Decide(t.Context(), client.Decision{ApprovalID: question.ID, Approve: true}); err != nil {
		t.Fatal(err)
	}
	r.end(from, r.runtime)
	r.model.expect(t, []string{"it is there"})
	if len(asked) > 0 {
		t.Error("the person was asked twice")
	}
}

// cuttable passes on what is sent to a WebSocket's address; cut ends the connections of now.
func cuttable(t *testing.T, to string) (url string, cut func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var open []net.Conn
	cut = func() {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range open {
			c.Close()
		}
		open = nil
	}
	t.Cleanup(func() { l.Close(); cut() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", strings.TrimPrefix(to, "ws://"))
			if err != nil {
				c.Close()
				continue
			}
			mu.Lock()
			open = append(open, c, server)
			mu.Unlock()
			go io.Copy(c, server)
			go io.Copy(server, c)
		}
	}()
	return "ws://" + l.Addr().String(), cut
}
