package check

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/programs"
)

func TestSamplesNameEachAlternativeOfAPattern(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string][]string{
		"go {test,vet} **": {"go test", "go vet"},
		"cat *":            {"cat sample"},
		"a{b,c}d":          {"abd", "acd"},
		"{a,b}-{c,d}":      {"a-c", "a-d", "b-c", "b-d"},
		"x {a,{b,c}}":      {"x a", "x b", "x c"},
		"say 'a b'":        nil,
		"**":               nil,
	} {
		if diff := cmp.Diff(want, samples(pattern)); diff != "" {
			t.Errorf("samples of %q (-want +got):\n%s", pattern, diff)
		}
	}
}

func TestARuleIsTriedOnOtherSpellings(t *testing.T) {
	t.Parallel()
	got := mutations([]string{"tool", "rm", "-rf", "--mode=x", "a"})
	for _, want := range []string{"env tool rm -rf --mode=x a", "/usr/bin/tool rm -rf --mode=x a", "tool rm a -rf --mode=x", "tool rm -r -f --mode=x a", "tool rm -fr --mode=x a", "tool rm -rf --mode x a", "sh -c 'tool rm -rf --mode=x a'"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not among %q", want, got)
		}
	}
	if got := mutations([]string{"go", "test", "-exec"}); slices.Contains(got, "go test -e -x -e -c") {
		t.Errorf("one flag is taken for several: %q", got)
	}
}

// A rule that matches the words as they are written, and nothing else, is named with what
// passes it.
func TestSpellingsThatPassARuleAreNamed(t *testing.T) {
	t.Parallel()
	open := policy.Defaults{Bash: policy.Allow, Unanalysable: policy.Ask}
	p := must.Get(policy.Compile(policy.Options{Workspace: "/w"}, policy.File{Name: "p.yaml", Defaults: open, Commands: []policy.Rule{
		{ID: "wipe", Action: policy.Deny, Run: []string{"rm -rf **"}},
		{ID: "path", Action: policy.Deny, Run: []string{"./tool wipe **"}},
	}}))(t)
	j := &Judge{Policy: p, Effects: func(_ string, arguments json.RawMessage) ([]policy.Effect, error) {
		var a struct{ Command string }
		if err := json.Unmarshal(arguments, &a); err != nil {
			return nil, err
		}
		// A reader of scripts that takes each of them for one command without quotes.
		words := strings.Fields(a.Command)
		return []policy.Effect{{Kind: policy.Exec, Argv: programs.Words(words), Dirs: []string{"/w"}}}, nil
	}}
	var passing string
	for _, f := range j.Lint() {
		passing += f.Rule + ": " + f.Problem + "\n"
	}
	if want := `wipe: "true && rm -rf", "\"rm\" -rf" does the same`; !strings.Contains(passing, want) {
		t.Errorf("%q is not said:\n%s", want, passing)
	}
	for _, never := range []string{"env rm -rf", `"./tool wipe" passes`} {
		if strings.Contains(passing, never) {
			t.Errorf("%q is said, though the rule covers it:\n%s", never, passing)
		}
	}
}
