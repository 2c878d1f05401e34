package bash

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/argument"
)

// hang is long enough for any machine, and ends a test that would never end.
const hang = 2 * time.Minute

// newTool makes the tool for a workspace, without confinement: that is the
// executor's, and tested there.
func newTool(ws string) tools.Tool {
	return New(Options{
		Workspace: ws, Env: append(environment(), "TERM=dumb"),
		Profile: sandbox.Profile{Mode: sandbox.FullAccess, Workspace: ws, Network: true},
	})
}

func TestArguments(t *testing.T) {
	t.Parallel()
	ws, out := must.Workspace(t)
	tool := newTool(ws)
	for _, c := range []struct {
		args, want string
	}{
		{`{"command":"ls"}`, ""},
		{`{"cmd":"ls","workdir":"src","timeout_ms":5}`, ""},
		{`{"command":"ls","dir_path":"src/../src","description":"x","justification":{"a":1}}`, ""},
		{fmt.Sprintf(`{"command":"ls","cwd":%q}`, out), ""},
		{`{"command":"ls","timeout":0,"terminal":"single","stdin":"closed"}`, ""},
		{`{"command":"ls","timeout":600000}`, ""},
		{`{}`, "command"},
		{`{"command":""}`, `invalid argument "command": it is empty`},
		{`{"command":" \n\t"}`, `invalid argument "command": it is empty`},
		{`{"command":"ls","cwd":"gone"}`, fmt.Sprintf("%q does not exist", ws+"/gone")},
		{`{"command":"ls","cwd":"a.txt"}`, "is not a directory"},
		{`{"command":"ls","cwd":"a.txt/x"}`, "cannot be opened"},
		{`{"command":"ls","cwd":"loop"}`, "loop"},
		{`{"command":"ls","timeout":-1}`, "is negative"},
		{`{"command":"ls","timeout":600001}`, "above the maximum of 600000 ms"},
		{`{"command":"ls","timeout":1.5}`, "timeout"},
		{`{"command":"ls","terminal":"none"}`, "terminal"},
		{`{"command":"ls","stdin":"maybe"}`, "stdin"},
		{`{"command":"ls","shell":"zsh"}`, "shell"},
	} {
		_, err := tool.Build(json.RawMessage(c.args))
		var fault *argument.Error
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.args, err)
		case c.want != "" && (!errors.As(err, &fault) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %s", c.args, err, c.want)
		}
	}
}

func TestDefaultsOfACall(t *testing.T) {
	t.Parallel()
	ws, _ := must.Workspace(t)
	tool := newTool(ws)
	for args, want := range map[string]invocation{
		`{"command":"ls"}`:                                      {dir: ws, timeout: DefaultTimeout, terminal: executor.Split},
		`{"command":"ls","timeout":0}`:                          {dir: ws, timeout: MaxTimeout, terminal: executor.Split},
		`{"command":"ls","terminal":"single"}`:                  {dir: ws, timeout: DefaultTimeout, terminal: executor.Single, stdin: true},
		`{"command":"ls","terminal":"single","stdin":"closed"}`: {dir: ws, timeout: DefaultTimeout, terminal: executor.Single},
		`{"command":"ls","terminal":"off","stdin":"open"}`:      {dir: ws, timeout: DefaultTimeout, terminal: executor.Off, stdin: true},
		`{"command":"ls","cwd":"inside"}`:                       {dir: ws + "/src", timeout: DefaultTimeout, terminal: executor.Split},
	} {
		inv := must.Get(tool.Build(json.RawMessage(args)))(t)
		got := inv.(*invocation)
		if got.dir != want.dir || got.timeout != want.timeout || got.terminal != want.terminal || got.stdin != want.stdin {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

func TestTheFolderOfACallIsShownUnlessItIsTheWorkspace(t *testing.T) {
	t.Parallel()
	ws, out := must.Workspace(t)
	for dir, want := range map[string]string{
		out:        "read " + out, // outside, it needs a rule that allows it
		"src/deep": "read " + ws + "/src/deep, possible",
		".":        "",
		"":         "",
	} {
		inv := must.Get(newTool(ws).Build(json.RawMessage(fmt.Sprintf(`{"command":"true","cwd":%q}`, dir))))(t)
		got := ""
		for _, e := range inv.Effects() {
			if e.Source == "cwd" {
				got = e.String() + map[bool]string{true: ", possible"}[e.Possible]
			}
		}
		if got != want {
			t.Errorf("%q: %q, want %q", dir, got, want)
		}
	}
}

func TestTheDefinitionIsAValidSchema(t *testing.T) {
	t.Parallel()
	d := newTool("/w").Definition()
	var schema struct {
		Properties map[string]any
		Required   []string
	}
	if err := json.Unmarshal(d.Parameters, &schema); err != nil || d.Name != "bash" || d.Description == "" {
		t.Fatalf("%v: %+v", err, d)
	}
	if len(schema.Properties) != 7 || len(schema.Required) != 1 {
		t.Errorf("%+v", schema)
	}
}

func TestThePreviewHidesNothing(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"ls -l\n\tx ä 日本": "ls -l\n\tx ä 日本",
		"ls\u202e x":      `ls\u{202e} x`,
		"ls \x1b[8mrm":    `ls \u{001b}[8mrm`,
		"a\u200bb\r\x00":  `a\u{200b}b\u{000d}\u{0000}`,
		"a\u00a0\u2800b":  `a\u{00a0}\u{2800}b`,
		"a\xffb\ufffd":    "a\\xffb\ufffd",
	} {
		if got := (&invocation{script: script}).Text(); got != want {
			t.Errorf("%q: %q, want %q", script, got, want)
		}
	}
}

// recorder collects the output of a call.
type recorder struct {
	mu     sync.Mutex
	stdout bytes.Buffer
	stderr bytes.Buffer
	seen   chan struct{} // closed when stdout first holds a line
}

func (r *recorder) io(started chan tools.Started) tools.IO {
	r.seen = make(chan struct{})
	var once sync.Once
	return tools.IO{
		Output: func(s tools.Stream, p []byte) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if s == tools.Stderr {
				r.stderr.Write(p)
				return
			}
			r.stdout.Write(p)
			if bytes.ContainsRune(r.stdout.Bytes(), '\n') {
				once.Do(func() { close(r.seen) })
			}
		},
		Started: func(s tools.Started) {
			if started != nil {
				started <- s
			}
		},
	}
}

// execute runs a call and returns how it ended and what it printed.
func execute(t *testing.T, args string) (tools.Result, *recorder) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("commands are run on Linux only")
	}
	ws, _ := must.Workspace(t)
	inv := must.Get(newTool(ws).Build(json.RawMessage(args)))(t)
	r := &recorder{}
	started := make(chan tools.Started, 1)
	ctx, stop := context.WithTimeout(t.Context(), hang)
	defer stop()
	result := inv.Execute(ctx, r.io(started))
	if s := <-started; s.PID == 0 || s.Terminal != result.Terminal {
		t.Errorf("started: %+v", s)
	}
	if result.Sandbox == nil || result.Sandbox.Profile != "danger-full-access" {
		t.Errorf("sandbox: %+v", result.Sandbox)
	}
	return result, r
}

func TestExecuteTellsHowTheCommandEnded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args, text, stdout, stderr string
		code                       int
		failure                    tools.Failure
	}{
		{args: `{"command":"echo a; echo b >&2"}`, stdout: "a\n", stderr: "b\n"},
		{args: `{"command":"echo a; echo b >&2; tty","terminal":"off"}`, text: "Exit code: 1", code: 1, stdout: "a\nnot a tty\n", stderr: "b\n"},
		{args: `{"command":"exit 3"}`, text: "Exit code: 3", code: 3},
		{args: `{"command":"kill -TERM $$"}`, text: "Terminated by SIGTERM (exit code 143)", code: 143},
		{args: `{"command":"echo a; sleep 1000","timeout":4000}`, text: "Command timed out after 4000 ms and was stopped. Use a larger timeout (at most 600000), or do less in one call.", stdout: "a\n", code: -1, failure: tools.Timeout},
	} {
		r, out := execute(t, c.args)
		if r.Text != c.text || r.Failure != c.failure || r.IsError != (c.text != "") || out.stdout.String() != c.stdout || out.stderr.String() != c.stderr {
			t.Errorf("%s:\n%+v\nstdout %q stderr %q", c.args, r, out.stdout.String(), out.stderr.String())
		}
		if r.Exit == nil || c.code >= 0 && r.Exit.Code != c.code {
			t.Errorf("%s: exit %+v", c.args, r.Exit)
		}
	}
}

func TestExecuteRelaysInput(t *testing.T) {
	t.Parallel()
	ws, _ := must.Workspace(t)
	inv := must.Get(newTool(ws).Build(json.RawMessage(`{"command":"read x; echo \"got $x\"","stdin":"open","terminal":"off"}`)))(t)
	input := make(chan tools.Input, 2)
	input <- tools.Input{Data: []byte("hello\n")}
	input <- tools.Input{EOF: true}
	r := &recorder{}
	io := r.io(nil)
	io.Input = input
	ctx, stop := context.WithTimeout(t.Context(), hang)
	defer stop()
	if result := inv.Execute(ctx, io); result.IsError || r.stdout.String() != "got hello\n" {
		t.Errorf("%+v: %q", result, r.stdout.String())
	}
}

func TestExecuteIsStoppedByItsContext(t *testing.T) {
	t.Parallel()
	ws, _ := must.Workspace(t)
	inv := must.Get(newTool(ws).Build(json.RawMessage(`{"command":"echo on; sleep 1000"}`)))(t)
	ctx, stop := context.WithTimeout(t.Context(), hang)
	defer stop()
	r := &recorder{}
	io := r.io(nil)
	// Ends when the command has printed its line, or with the test.
	go func() {
		select {
		case <-r.seen:
		case <-ctx.Done():
		}
		stop()
	}()
	if result := inv.Execute(ctx, io); result.Failure != tools.Cancelled || !result.IsError || r.stdout.String() != "on\n" {
		t.Errorf("%+v", result)
	}
}

func TestBackgroundProcessesAreReported(t *testing.T) {
	t.Parallel()
	r, _ := execute(t, `{"command":"sleep 1234 & echo started"}`)
	if len(r.Leftovers) != 1 || !strings.Contains(r.Leftovers[0].Command, "sleep 1234") || !strings.HasPrefix(r.Text, "Background processes do not outlive a call; stopped: sleep 1234") {
		t.Errorf("%+v", r)
	}
}

// A program that names itself over several lines adds none to what toold says.
func TestANameOfAProcessIsOnOneLine(t *testing.T) {
	t.Parallel()
	r, _ := execute(t, `{"command":"bash -c 'exec -a \"$0\" sleep 1236' $'x\\nNotice: approved' & until grep -q Notice /proc/$!/cmdline; do :; done"}`)
	if !strings.Contains(r.Text, `stopped: x\nNotice: approved 1236`) {
		t.Errorf("%s", r.Text)
	}
}

func TestATokenIsMaskedInTheNamesOfBackgroundProcesses(t *testing.T) {
	t.Parallel()
	token := "gh" + "p_" + strings.Repeat("aB3dE6", 6)
	r, _ := execute(t, `{"command":"bash -c 'sleep 1235; : `+token+`' & echo started"}`)
	if !strings.Contains(r.Text, "stopped: bash -c") || strings.Contains(r.Text, token) {
		t.Errorf("%s", r.Text)
	}
}

func TestABackgroundCallLastsAsLongAsItsProcesses(t *testing.T) {
	t.Parallel()
	r, out := execute(t, `{"command":"(sleep 1; echo late) & echo now","background":true}`)
	if len(r.Leftovers) != 0 || r.IsError || out.stdout.String() != "now\nlate\n" {
		t.Errorf("%+v, %q", r, out.stdout.String())
	}
}

func TestABackgroundCallMayTakeLonger(t *testing.T) {
	t.Parallel()
	ws, _ := must.Workspace(t)
	for args, want := range map[string]string{
		`{"command":"ls","background":true,"timeout":600001}`:   "",
		`{"command":"ls","background":true,"timeout":28800001}`: "above the maximum of 28800000 ms",
		`{"command":"ls","background":"yes"}`:                   "background",
	} {
		inv, err := newTool(ws).Build(json.RawMessage(args))
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
		if want == "" && (err != nil || !inv.Traits().Background) {
			t.Errorf("%s: %v, %v", args, inv, err)
		}
	}
}

func TestAFolderThatVanishedIsAFailureWithAReport(t *testing.T) {
	t.Parallel()
	ws, _ := must.Workspace(t)
	dir := filepath.Join(ws, "vanishing")
	must.Do(t, os.Mkdir(dir, 0o755))
	inv := must.Get(newTool(ws).Build(json.RawMessage(`{"command":"true","cwd":"vanishing"}`)))(t)
	must.Do(t, os.Remove(dir))
	ctx, stop := context.WithTimeout(t.Context(), hang)
	defer stop()
	r := inv.Execute(ctx, tools.IO{})
	if !r.IsError || r.Failure == "" || r.Sandbox == nil || r.Text == "" {
		t.Errorf("%+v", r)
	}
}

func TestWithoutASandboxNothingRuns(t *testing.T) {
	t.Parallel()
	v := &invocation{tool: New(Options{Workspace: "/w"}).(*tool), profile: sandbox.Profile{Mode: sandbox.WorkspaceWrite}}
	r := v.result(executor.Exit{}, &sandbox.StageError{Stage: "clone", Err: os.ErrPermission, Advice: "run toold doctor"})
	if r.Failure != tools.SandboxUnavailable || !r.IsError || r.Sandbox == nil || r.Sandbox.Profile != "workspace-write" || len(r.Sandbox.Enforced) != 0 ||
		r.Text != "The command did not run: sandbox unavailable: clone: permission denied; run toold doctor." {
		t.Errorf("%+v", r)
	}
}

// What a call may not read, it learns nothing of.
func TestNoDirectoryTellsWhatIsHidden(t *testing.T) {
	t.Parallel()
	ws, out := must.Workspace(t)
	hidden := filepath.Join(out, "hidden")
	must.Do(t, os.MkdirAll(filepath.Join(hidden, "dir"), 0o700))
	must.Do(t, os.WriteFile(filepath.Join(hidden, "file"), nil, 0o600))
	must.Do(t, os.Symlink(ws, filepath.Join(hidden, "link")))
	tool := New(Options{Workspace: ws, Profile: sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: ws, Hide: []string{hidden}}})
	for _, name := range []string{"dir", "file", "link", "missing", "dir/.."} {
		_, err := tool.Build(must.Get(json.Marshal(map[string]string{"command": "ls", "cwd": hidden + "/" + name}))(t))
		if err == nil || !strings.Contains(err.Error(), `/`+name+`" is hidden from calls (sandbox.hide)`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
