package tools

import (
	"encoding/json"
	"os"
	"strings"
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

func TestTheContractListsEveryNameOfATool(t *testing.T) {
	t.Parallel()
	contract, err := os.ReadFile("../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{} // of the table, by the tool's own name
	for line := range strings.Lines(string(contract)) {
		if name, rest, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "`"); ok && strings.HasPrefix(line, "| `") {
			rows[name] += rest
		}
	}
	for alias, name := range aliases() {
		if !strings.Contains(rows[name], "`"+alias+"`") {
			t.Errorf("docs/protocol.md does not list %q as a name of %s", alias, name)
		}
	}
}
