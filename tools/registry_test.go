package tools

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type named string

func (n named) Definition() Definition                  { return Definition{Name: string(n)} }
func (named) Build(json.RawMessage) (Invocation, error) { return nil, &ArgumentError{} }

func TestLookupKnowsTheNamesOfOtherToolSets(t *testing.T) {
	t.Parallel()
	r, err := NewRegistry(named("bash"), named("read_file"), named("edit_file"))
	if err != nil {
		t.Fatal(err)
	}
	for asked, want := range map[string]string{
		"bash": "bash", "Bash": "bash", "shell_command": "bash", "run_shell_command": "bash", "exec_command": "bash",
		"Read": "read_file", "ReadFile": "read_file", "Edit": "edit_file", "replace": "edit_file",
		"Write": "", "write_file": "", "BASH": "", "": "", "bash ": "",
	} {
		tool, canonical, ok := r.Lookup(asked)
		if canonical != want || ok != (want != "") || ok != (tool != nil) {
			t.Errorf("Lookup(%q) = %v, %q, %v; want %q", asked, tool, canonical, ok, want)
		}
	}
	want := []Definition{{Name: "bash"}, {Name: "read_file"}, {Name: "edit_file"}}
	if diff := cmp.Diff(want, r.Definitions()); diff != "" {
		t.Error(diff)
	}
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
