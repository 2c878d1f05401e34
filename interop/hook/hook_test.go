package hook

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/must"
)

// Each file of testdata has what an agent sends before a call, how it is read, and what is
// answered when it may go on and when it may not.
func TestEachDialectIsReadAndAnswered(t *testing.T) {
	for _, d := range Dialects() {
		t.Run(d.Name, func(t *testing.T) {
			a := must.Get(txtar.ParseFile(filepath.Join("testdata", d.Name+".txtar")))(t)
			part := map[string]string{}
			for _, f := range a.Files {
				part[f.Name] = string(f.Data)
			}
			event, c, err := d.read("/own", strings.NewReader(part["event"]))
			if err != nil {
				t.Fatal(err)
			}
			text := must.Get(json.Marshal(map[string]any{
				"id": c.ID, "tool": c.Tool, "dir": c.Dir, "session": c.Session, "input": c.Input,
			}))(t)
			yes, no := d.write(event, nil), d.write(event, errors.New("denied by rule x"))
			for name, got := range map[string]string{"call": string(text) + "\n", "allow": string(yes.Stdout), "deny": string(no.Stdout)} {
				if diff := cmp.Diff(part[name], got); diff != "" {
					t.Errorf("%s (-want +got)\n%s", name, diff)
				}
			}
			if yes.Code != 0 || yes.Stderr != "" || no.Code != 2 || no.Stderr != "denied by rule x\n" {
				t.Errorf("the answers are %+v and %+v", yes, no)
			}
		})
	}
}

// What is not understood is denied in the agent's form, by the exit code and on both streams.
func TestWhatIsNotUnderstoodIsDenied(t *testing.T) {
	j := Judge{Dial: func(context.Context) (*client.Client, error) { return nil, errors.New("nothing there") }, Wait: 1 << 40}
	for _, d := range Dialects() {
		event := d.events[0]
		for _, text := range []string{
			"", "null", "[]", "{", `{}`, `"x"`, `{"hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{}}`,
			`{"hook_event_name":` + quote(event) + `}`,
			`{"hook_event_name":` + quote(event) + `,"tool_name":"Bash"}`,
			`{"hook_event_name":` + quote(event) + `,"tool_name":"Bash","tool_input":null}`,
			`{"hook_event_name":` + quote(event) + `,"tool_name":"Bash","tool_input":"ls"}`,
			`{"hook_event_name":` + quote(event) + `,"tool_name":7,"tool_input":{}}`,
			`{"hook_event_name":` + quote(event) + `,"tool_name":"Bash","tool_input":{},"cwd":"here"}`,
			`{"hook_event_name":` + quote(event) + `,"tool_name":"Bash","tool_input":{"command":"ls"}}`, // without a daemon
			`{"hook_event_name":` + quote(event) + `,"tool_name":"Bash","tool_input":{}} {}`,
			`{"hook_event_name":` + quote(event) + `,"tool_name":"Bash","tool_input":{"command":"ls"},"tool_input":{"command":"rm"}}`,
			`{"hook_event_name":` + quote(event) + `,"tool_name":"Bash","tool_input":{},"cwd":"/a","working_dir":"/b"}`,
		} {
			a := d.Answer(t.Context(), j, "/own", strings.NewReader(text))
			if a.Code != 2 || a.Stderr == "" || len(a.Stdout) == 0 || strings.Contains(string(a.Stdout), "allow\"") || strings.Contains(string(a.Stdout), `"ask"`) {
				t.Errorf("%s: %s is answered with %+v %s", d.Name, text, a, a.Stdout)
			}
		}
	}
}

func quote(s string) string { return `"` + s + `"` }

func TestWhatToolsDoIsKnownByTheirNames(t *testing.T) {
	for _, c := range []struct{ tool, input, want string }{
		{"Bash", `{"command":"ls"}`, `{"command":"ls"}`},
		{"shell", `{"command":["bash","-lc","ls"],"workdir":"sub"}`, `{"command":["bash","-lc","ls"],"in":"sub"}`},
		{"exec_command", `{"cmd":"ls","yield_time_ms":5}`, `{"command":"ls"}`},
		{"Bash", `{"command":null}`, `{"other":true}`},
		{"Write", `{"file_path":"a","content":"x"}`, `{"write":["a"]}`},
		{"MultiEdit", `{"file_path":"a","edits":[{"old_string":"x"}]}`, `{"write":["a"]}`},
		{"multi_replace_string_in_file", `{"replacements":[{"filePath":"a"},{"filePath":"b"}]}`, `{"write":["a","b"]}`},
		{"editFiles", `{"files":["a","b"]}`, `{"write":["a","b"]}`},
		{"Edit", `{}`, `{"other":true}`},
		{"Edit", `{"file_path":null}`, `{"other":true}`},
		{"Edit", `{"FilePath":"a","file_path":"a"}`, `{"write":["a"]}`},
		{"Bash", `{"Command":"ls"}`, `{"command":"ls"}`},
		{"NotebookEdit", `{"notebook_path":"a"}`, `{"write":["a"]}`},
		{"Read", `{"file_path":"a"}`, `{"read":["a"]}`},
		{"Grep", `{"pattern":"x"}`, `{"search":["/w"]}`},
		{"Grep", `{"pattern":"../x","path":"a"}`, `{"search":["a"]}`},
		{"grep_search", `{"pattern":"x","dir_path":"a"}`, `{"search":["a","/w"]}`},
		{"Glob", `{"pattern":"**/*.go","path":"a"}`, `{"part":"names","search":["a"]}`},
		{"Glob", `{"pattern":"../b/*"}`, `{"part":"names","search":["/w/../b/"]}`},
		{"Glob", `{"pattern":"/etc/**","path":"a"}`, `{"part":"names","search":["/etc/"]}`},
		{"web_fetch", `{"prompt":"read https://b.test","url":"https://a.test"}`, `{"other":true}`},
		{"WebFetch", `{"prompt":"read https://b.test","url":"https://a.test"}`, `{"hosts":["a.test"]}`},
		{"LS", `{"path":"a"}`, `{"part":"names","search":["a"]}`},
		{"str_replace_based_edit_tool", `{"command":"view","path":"a"}`, `{"read":["a"]}`},
		{"developer__text_editor", `{"command":"insert","path":"a"}`, `{"write":["a"]}`},
		{"WebFetch", `{"url":"https://user@host.test:1/x"}`, `{"hosts":["host.test"]}`},
		{"WebFetch", `{"url":"file:///x"}`, `{"other":true}`},
		{"fetch_webpage", `{"urls":["https://a.test","http://b.test/x"]}`, `{"hosts":["a.test","b.test"]}`},
		{"apply_patch", `{"input":"*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-x\n*** Delete File: c\n*** End Patch"}`, `{"write":["a","b","c"]}`},
		{"apply_patch", `{"input":"nothing"}`, `{"other":true}`},
		{"TodoWrite", `{"todos":[]}`, `{"harmless":true}`},
		{"mcp__github__create_issue", `{"file_path":"a","command":"ls"}`, `{"other":true}`},
	} {
		got := Arguments("test", Call{Tool: c.tool, Dir: "/w", Input: json.RawMessage(c.input)})
		for _, name := range []string{"program", "tool", "cwd", "input"} {
			if got[name] == nil {
				t.Errorf("%s has no %s", c.tool, name)
			}
			delete(got, name)
		}
		if text, err := json.Marshal(got); err != nil || string(text) != c.want {
			t.Errorf("%s %s: got %s, %v, want %s", c.tool, c.input, text, err, c.want)
		}
	}
}

// Whichever of several spellings the agent reads, toold has judged no other.
func TestWhatMayBeReadInSeveralWaysIsRefused(t *testing.T) {
	for tool, inputs := range map[string][]string{
		"Bash": {
			`{"command":"ls","cmd":"rm -r ."}`, `{"command":"ls","Command":"rm -r ."}`, `{"command":"ls","command":"rm -r ."}`, `{"command":"ls","command":null}`,
			`{"command":"ls","com\u017fcript":"x","\u017fcript":"rm"}`, `{"command":"ls","script":{"run":"rm"}}`, `{"command":"ls","cmd":["rm"]}`,
			`{"command":"ls","workdir":"a","cwd":"b"}`, `{"command":"ls","workdir":"","cwd":"b"}`, `{"command":"ls","workdir":["a"]}`, `[]`, `null`,
		},
		"Write": {
			`{"path":"a","file_path":"b"}`, `{"file_path":"a","filePath":"b"}`, `{"path":"a","path":"b"}`, `{"path":["a"]}`, `{"path":"a","file_path":{"x":"b"}}`,
			`{"path":"a","files":"b"}`, `{"path":"a","files":[["b"]]}`, `{"path":"a","files":[7]}`, `{"edits":[{"path":"a","PATH":"b"}]}`, `{"path":"file:///a%20b"}`, `{"path":"file://host/a"}`,
		},
		"Read":                        {`{"path":"a","absolute_path":"b"}`},
		"Grep":                        {`{"path":"a","directory":"b"}`},
		"Glob":                        {`{"pattern":"*/../../x"}`, `{"pattern":"{..,a}/x"}`, `{"pattern":"a*/.."}`, `{"pattern":"a","Pattern":"b"}`},
		"str_replace_based_edit_tool": {`{"command":"view","Command":"create","path":"a"}`, `{"command":["view"],"path":"a"}`},
		"apply_patch":                 {`{"input":"*** Add File: a","patch":"*** Add File: b"}`, `{"input":["*** Add File: a"]}`},
		"WebFetch":                    {`{"url":"https://a.test","uri":"https://b.test"}`, `{"url":"https://a.test","URL":"https://b.test"}`},
	} {
		for _, input := range inputs {
			got := Arguments("test", Call{Tool: tool, Dir: "/w", Input: json.RawMessage(input)})
			if got["unclear"] == nil {
				t.Errorf("%s %s is judged as %v", tool, input, got)
			}
		}
	}
}

// A golden file that no dialect has is one that was forgotten.
func TestEachFileIsADialect(t *testing.T) {
	files, err := os.ReadDir("testdata")
	if err != nil || len(files) != len(Dialects()) {
		t.Errorf("%d files, %v, and %d dialects", len(files), err, len(Dialects()))
	}
}

// Some agents run the call when the hook takes too long, so that it must not wait for its input either.
func TestAHookAnswersInTime(t *testing.T) {
	for _, d := range Dialects() {
		for name, cancelled := range map[string]time.Duration{"while the input is not complete": time.Hour, "when it is told to end": time.Second} {
			synctest.Test(t, func(t *testing.T) {
				in, agent := io.Pipe()
				defer agent.Close()
				ctx, cancel := context.WithTimeout(t.Context(), cancelled)
				defer cancel()
				// Ends with the input.
				go io.WriteString(agent, `{"hook_event_name":`)
				began := time.Now()
				a := d.Answer(ctx, Judge{Program: d.Name, Wait: d.Wait}, "/w", in)
				if took := time.Since(began); a.Code != denied || took > min(d.Wait, cancelled)+mostLate {
					t.Errorf("%s: %s: after %v the answer is %+v", d.Name, name, took, a)
				}
			})
		}
	}
}
