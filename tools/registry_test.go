package tools

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/tools/argument"
)

type named string

func (n named) Definition() Definition                  { return Definition{Name: string(n)} }
func (named) Build(json.RawMessage) (Invocation, error) { return nil, &argument.Error{} }

func TestLookupKnowsTheNamesOfOtherToolSets(t *testing.T) {
	t.Parallel()
	r := must.Get(NewRegistry(named("bash"), named("read_file"), named("edit_file")))(t)
	for asked, want := range map[string]string{
		"bash": "bash", "Bash": "bash", "shell_command": "bash", "run_shell_command": "bash", "exec_command": "bash",
		"Read": "read_file", "ReadFile": "read_file", "Edit": "edit_file", "replace": "edit_file",
		"shell": "bash", "local_shell": "bash", "read": "read_file", "edit": "edit_file", "MultiEdit": "", "write": "",
		"Write": "", "write_file": "", "BASH": "", "": "", "bash ": "",
	} {
		tool, canonical, ok := r.Lookup(asked)
		if ok && canonical != want || ok != (want != "") || ok != (tool != nil) {
			t.Errorf("Lookup(%q) = %v, %q, %v; want %q", asked, tool, canonical, ok, want)
		}
	}
	want := []Definition{{Name: "bash"}, {Name: "read_file"}, {Name: "edit_file"}}
	must.Match(t, want, r.Definitions())
}

func TestRegistryRefusesNamesThatCouldBeConfused(t *testing.T) {
	t.Parallel()
	for _, tools := range [][]Tool{
		{named("bash"), named("bash")},
		{named("replace")},
		{named("Upper")},
		{named("")},
		{named("a b")},
	} {
		if _, err := NewRegistry(tools...); err == nil {
			t.Errorf("%v accepted", tools)
		}
	}
}

func TestTheContractListsEveryNameOfATool(t *testing.T) {
	t.Parallel()
	contract := must.Get(os.ReadFile("../docs/protocol.md"))(t)
	rows := map[string]string{} // of the table, by the tool's own name
	for line := range strings.Lines(string(contract)) {
		if name, rest, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "`"); ok && strings.HasPrefix(line, "| `") {
			rows[name] += rest
		}
	}
	for alias, name := range aliases() {
		if !strings.Contains(rows[name.tool], "`"+alias+"`") {
			t.Errorf("docs/protocol.md does not list %q as a name of %s", alias, name.tool)
		}
	}
}

// echo is a tool that keeps the arguments it was built with.
type echo struct {
	name string
	got  *string
}

func (e echo) Definition() Definition { return Definition{Name: e.name} }

func (e echo) Build(args json.RawMessage) (Invocation, error) {
	*e.got = string(args)
	return nil, nil
}

func (echo) Location(args json.RawMessage) ([]string, bool) { return []string{string(args)}, true }

func TestArgumentsOfOtherToolSetsAreAdapted(t *testing.T) {
	t.Parallel()
	var got string
	r := must.Get(NewRegistry(echo{"bash", &got}, echo{"read_file", &got}, echo{"grep", &got}, echo{"glob", &got}))(t)
	for _, tc := range []struct{ name, args, want string }{
		{"shell", `{"command":["bash","-lc","cd x && ls"],"workdir":"/w","timeout_ms":5}`, `{"command":"cd x \u0026\u0026 ls","workdir":"/w","timeout_ms":5}`},
		{"shell", `{"command":["ls","-la","a b","it's","$HOME",""]}`, `{"command":"ls -la 'a b' 'it'\\''s' '$HOME' ''"}`},
		{"shell", `{"command":["/usr/bin/zsh","-lc","ls; pwd"]}`, `{"command":"/usr/bin/zsh -lc 'ls; pwd'"}`},
		{"shell", `{"command":["./bash","-c","ls"]}`, `{"command":"./bash -c ls"}`},
		{"shell", `{"command":"ls"}`, `{"command":"ls"}`},
		{"local_shell", `{"type":"exec","command":["ls"],"env":{},"user":null,"working_directory":"/w"}`, `{"command":"ls","working_directory":"/w"}`},
		{"bash", `{"command":["ls"]}`, `{"command":["ls"]}`},
		{"Read", `{"file_path":"a"}`, `{"file_path":"a","numbered":true}`},
		{"Read", `{"file_path":"a","offset":0,"numbered":false}`, `{"file_path":"a","numbered":false}`},
		{"read", `{"file_path":"a"}`, `{"file_path":"a"}`},
		{"Grep", `{"pattern":"x"}`, `{"pattern":"x","mode":"files"}`},
		{"Grep", `{"pattern":"x","output_mode":"content","-n":true}`, `{"pattern":"x","output_mode":"content","-n":true}`},
		{"grep", `{"pattern":"x"}`, `{"pattern":"x"}`},
		{"LS", `{"path":"/w"}`, `{"path":"/w","pattern":"*"}`},
	} {
		tool, _, ok := r.Lookup(tc.name)
		if !ok {
			t.Errorf("%s is unknown", tc.name)
			continue
		}
		if _, err := tool.Build(json.RawMessage(tc.args)); err != nil || got != tc.want {
			t.Errorf("%s %s: got %s, %v; want %s", tc.name, tc.args, got, err, tc.want)
		}
		// The workspace is chosen by what is built.
		located, ok := tool.(Located)
		if !ok {
			t.Errorf("%s names no workspace", tc.name)
		} else if where, _ := located.Location(json.RawMessage(tc.args)); !slices.Equal(where, []string{tc.want}) {
			t.Errorf("%s %s is located by %s", tc.name, tc.args, where)
		}
	}
	tool, _, _ := r.Lookup("shell")
	for _, args := range []string{`{"command":["ls",1]}`, `{"command":["ls"],"command":["rm"]}`, `{`} {
		if _, err := tool.Build(json.RawMessage(args)); err == nil {
			t.Errorf("shell took %s", args)
		}
	}
}

func TestAnUnknownToolIsAnsweredWithANearName(t *testing.T) {
	t.Parallel()
	r := must.Get(NewRegistry(named("bash"), named("read_file")))(t)
	for asked, want := range map[string]string{
		"BASH":      `unknown tool "BASH"; did you mean "Bash"? the tools are bash, read_file`,
		"readfile":  `did you mean "ReadFile"?`,
		"read_fil":  `did you mean "read_file"?`,
		"frobulate": `unknown tool "frobulate"; the tools are bash, read_file`,
	} {
		if got := r.Unknown(asked); !strings.Contains(got, want) {
			t.Errorf("%s: %s; want %s", asked, got, want)
		}
	}
}
