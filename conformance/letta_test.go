//go:build linux

package conformance

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// lettaRig is a stock App Server of Letta Code, a user who is connected to it, and
// `toold letta` between it and a daemon.
type lettaRig struct {
	*mcpClient // site and daemon
	url        string
	runtime    map[string]any
	ws         *websocket.Conn
	turns      int

	mu     sync.Mutex
	frames []map[string]any
	more   chan struct{}
}

// newLettaRig starts all, with TOOLD_LETTA as the program letta.
func newLettaRig(t *testing.T) *lettaRig {
	t.Helper()
	program := os.Getenv("TOOLD_LETTA")
	if program == "" {
		t.Skip("TOOLD_LETTA names no program letta (Letta Code 0.32.18)")
	}
	bin := daemonOrSkip(t)
	r := &lettaRig{mcpClient: newCarefulSite(t, bin), more: make(chan struct{})}
	r.startServer(program, newChatModel(t).URL)
	r.connect()
	started := r.ask(map[string]any{
		"type": "runtime_start", "create_agent": map[string]any{"body": map[string]any{"name": "t", "model": "lmstudio/fake-model"}, "memfs": false},
		"create_conversation": map[string]any{}, "cwd": r.site.workspace, "mode": "standard", "client_info": map[string]any{"name": "t", "version": "1"},
	})
	r.runtime, _ = started["runtime"].(map[string]any)
	if r.runtime == nil {
		t.Fatalf("runtime_start was answered with %v", started)
	}
	r.startBridge(bin)
	return r
}

func (r *lettaRig) startServer(program, model string) {
	r.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.Fatal(err)
	}
	r.url = "ws://" + l.Addr().String()
	l.Close()
	home := r.TempDir()
	server := exec.Command(program, "server", "--listen", r.url, "--backend", "local")
	server.Dir = r.site.workspace
	server.Env = []string{
		"HOME=" + home, "PATH=" + os.Getenv("PATH"), "LETTA_LOCAL_BACKEND_DIR=" + filepath.Join(home, "backend"),
		"LETTA_CODE_TELEM=0", "DISABLE_AUTOUPDATER=1", "LMSTUDIO_BASE_URL=" + model + "/v1",
	}
	r.start(server)
}

// start runs a program until the test ends, with all that it starts.
func (r *lettaRig) start(cmd *exec.Cmd) {
	r.Helper()
	log, err := os.Create(filepath.Join(r.TempDir(), "log"))
	if err != nil {
		r.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = log, log, &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
		if text, err := os.ReadFile(log.Name()); err == nil && r.Failed() {
			r.Logf("%s printed:\n%s", filepath.Base(cmd.Path), text)
		}
		log.Close()
	})
}

// startBridge starts `toold letta` and waits until the conversation has toold's tools.
func (r *lettaRig) startBridge(bin string) {
	r.Helper()
	cmd := exec.Command(bin, "letta", "--url", r.url, "--agent", fmt.Sprint(r.runtime["agent_id"]), "--conversation", fmt.Sprint(r.runtime["conversation_id"]),
		"-C", r.site.workspace, "--state-dir", r.site.state, "--config", r.site.config)
	cmd.Env = []string{"HOME=" + r.site.home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	r.start(cmd)
	eventually(r.T, "the conversation has the tools of toold", func() bool {
		return strings.Contains(r.turn(lettaCall{"bash", map[string]any{"command": "echo hello"}})[0].text, "hello")
	})
}

func (r *lettaRig) connect() {
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

func (r *lettaRig) read() {
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

// await returns the first frame from an index on that is wanted, and the next index.
func (r *lettaRig) await(from int, wanted func(map[string]any) bool) (map[string]any, int) {
	r.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		r.mu.Lock()
		frames, more := r.frames, r.more
		r.mu.Unlock()
		for ; from < len(frames); from++ {
			if wanted(frames[from]) {
				return frames[from], from + 1
			}
		}
		select {
		case <-more:
		case <-deadline:
			last, _ := json.Marshal(frames[max(0, len(frames)-5):])
			r.Fatalf("what is awaited did not come; the last frames are %.3000s", last)
		}
	}
}

func (r *lettaRig) send(f map[string]any) {
	r.Helper()
	if err := r.ws.WriteJSON(f); err != nil {
		r.Fatal(err)
	}
}

// ask sends a request and returns its response.
func (r *lettaRig) ask(f map[string]any) map[string]any {
	r.Helper()
	r.turns++
	id := fmt.Sprintf("test-%d", r.turns)
	f["request_id"] = id
	r.send(f)
	got, _ := r.await(0, func(f map[string]any) bool { return f["request_id"] == id })
	return got
}

type lettaCall struct {
	tool string
	args map[string]any
}

type lettaReturn struct{ id, status, text string }

// begin has the model make calls. It returns from where on frames are about them.
func (r *lettaRig) begin(calls ...lettaCall) (from int) {
	r.Helper()
	r.mu.Lock()
	from = len(r.frames)
	r.mu.Unlock()
	r.turns++
	list := make([]map[string]any, len(calls))
	for i, c := range calls {
		list[i] = map[string]any{"id": fmt.Sprintf("c%d-%d", r.turns, i), "name": c.tool, "args": c.args}
	}
	text, err := json.Marshal(list)
	if err != nil {
		r.Fatal(err)
	}
	id := fmt.Sprintf("m%d", r.turns)
	r.send(map[string]any{"type": "input", "request_id": "in-" + id, "runtime": r.runtime, "payload": map[string]any{
		"kind": "create_message", "client_message_id": id,
		"messages": []any{map[string]any{"role": "user", "content": "CALL " + string(text), "client_message_id": id, "otid": id}},
	}})
	return from
}

// end waits for the end of a turn and returns what came of its calls.
func (r *lettaRig) end(from int) (list []lettaReturn) {
	r.Helper()
	_, end := r.await(from, func(f map[string]any) bool { return f["type"] == "turn_finished" })
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.frames[from:end] {
		d, _ := f["delta"].(map[string]any)
		if f["type"] == "stream_delta" && d["message_type"] == "tool_return_message" {
			list = append(list, lettaReturn{fmt.Sprint(d["tool_call_id"]), fmt.Sprint(d["status"]), fmt.Sprint(d["tool_return"])})
		}
	}
	return list
}

// turn makes calls and returns what came of them: the last frame about each.
func (r *lettaRig) turn(calls ...lettaCall) []lettaReturn {
	r.Helper()
	last := map[string]lettaReturn{}
	for _, got := range r.end(r.begin(calls...)) {
		last[got.id] = got
	}
	list := make([]lettaReturn, len(calls))
	for i := range calls {
		list[i] = last[fmt.Sprintf("c%d-%d", r.turns, i)]
	}
	return list
}

func TestStockLettaCodeWorksInToold(t *testing.T) {
	t.Parallel()
	r := newLettaRig(t)
	if err := os.WriteFile(filepath.Join(r.site.workspace, "hello.txt"), []byte("line one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := r.turn(lettaCall{"bash", map[string]any{"command": "echo out; exit 3"}}, lettaCall{"read_file", map[string]any{"file_path": "hello.txt"}})
	if got[0].status != "error" || !strings.Contains(got[0].text, "out") || !strings.Contains(got[1].text, "line one") {
		t.Errorf("a failing command and a file returned %+v", got)
	}
	r.turn(lettaCall{"edit_file", map[string]any{"file_path": "hello.txt", "old_string": "one", "new_string": "two"}})
	if text, err := os.ReadFile(filepath.Join(r.site.workspace, "hello.txt")); err != nil || string(text) != "line two\n" {
		t.Errorf("the edited file has %q, %v", text, err)
	}
	if got := r.turn(lettaCall{"bash", map[string]any{"command": "cat .env"}})[0]; got.status != "error" {
		t.Errorf("a denied command returned %+v", got)
	}
	if got := r.turn(lettaCall{"bash", map[string]any{"command": "head -c 1000000 /dev/zero | tr '\\0' x"}})[0]; len(got.text) < 10000 {
		t.Errorf("a megabyte returned %d bytes: %.200s", len(got.text), got.text)
	}
}

func TestAnInterruptedTurnOfLettaCodeEndsItsCall(t *testing.T) {
	t.Parallel()
	r := newLettaRig(t)
	from := r.begin(lettaCall{"bash", map[string]any{"command": "touch begun; sleep 1000"}})
	eventually(t, "the command runs", func() bool {
		_, err := os.Stat(filepath.Join(r.site.workspace, "begun"))
		return err == nil
	})
	if a := r.ask(map[string]any{"type": "abort_message", "runtime": r.runtime}); a["aborted"] != true {
		t.Fatalf("abort_message was answered with %v", a)
	}
	r.end(from) // else the command would go on for 1000 s
	if got := r.turn(lettaCall{"bash", map[string]any{"command": "echo again"}})[0]; !strings.Contains(got.text, "again") {
		t.Errorf("after it, a call returned %+v", got)
	}
}

func TestToolsOfLettaCodeRunOnlyWhereTooldAllows(t *testing.T) {
	t.Parallel()
	r := newLettaRig(t)
	secret := filepath.Join(r.site.workspace, ".env")
	if err := os.WriteFile(secret, []byte("KEY=geheim\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []lettaCall{
		{"Read", map[string]any{"file_path": secret}},
		{"Bash", map[string]any{"command": "cat .env", "description": "d"}},
		{"Bash", map[string]any{"command": "git push origin x; touch pushed", "description": "d"}},
		{"Write", map[string]any{"file_path": filepath.Join(r.site.home, "w.txt"), "content": "x"}},
	} {
		if got := r.turn(c)[0]; got.status != "error" || strings.Contains(got.text, "geheim") {
			t.Errorf("%v returned %+v", c, got)
		}
	}
	if got := r.turn(lettaCall{"Bash", map[string]any{"command": "ls", "description": "d"}})[0]; got.status != "success" {
		t.Errorf("an allowed one returned %+v", got)
	}
	for _, path := range []string{filepath.Join(r.site.workspace, "pushed"), filepath.Join(r.site.home, "w.txt")} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s was made", path)
		}
	}
	if err := r.daemon.stop(syscall.SIGKILL); err != nil {
		t.Log(err)
	}
	for _, c := range []lettaCall{{"Bash", map[string]any{"command": "touch alone", "description": "d"}}, {"bash", map[string]any{"command": "touch alone"}}} {
		if got := r.turn(c)[0]; got.status != "error" {
			t.Errorf("without a daemon, %v returned %+v", c, got)
		}
	}
	if _, err := os.Stat(filepath.Join(r.site.workspace, "alone")); err == nil {
		t.Error("without a daemon a command ran")
	}
}
