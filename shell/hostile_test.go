package shell

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/texts"
)

const hostileSize = texts.MaxScript

// judging returns a policy with n irrelevant rules and a few others.
func judging(t testing.TB, ws string, n int) *policy.Policy {
	t.Helper()
	ask := policy.Defaults{Bash: policy.Ask, Read: policy.Ask, Write: policy.Ask, Net: policy.Ask, Unanalysable: policy.Ask}
	f := policy.File{Defaults: ask, Presets: []string{"shell-readonly", "shell-workspace"}}
	for i := range n {
		f.Commands = append(f.Commands, policy.Rule{ID: fmt.Sprint("r", i), Action: policy.Action(i % 3), Run: []string{fmt.Sprintf("tool%d sub **", i)}})
	}
	f.Commands = append(f.Commands,
		policy.Rule{ID: "privilege", Action: policy.Deny, Run: []string{"sudo **"}},
		policy.Rule{ID: "remove", Action: policy.Deny, Run: []string{"rm -r -f **"}},
		policy.Rule{ID: "pushes", Action: policy.Ask, Run: []string{"* push **"}},
		policy.Rule{ID: "go", Action: policy.Allow, Run: []string{"go {build,test,vet} **"}},
	)
	f.Paths = []policy.Rule{
		{ID: "workspace", Action: policy.Allow, Paths: []string{"${workspace}/**"}},
		{ID: "secrets", Action: policy.Deny, Paths: []string{"${workspace}/**/.env", "**/*.pem"}},
	}
	p := must.Get(policy.Compile(policy.Options{Workspace: ws, Home: "/home/agent"}, f))(t)
	return p
}

// TestNoAmountOfTextHidesADeniedCommand puts a denied command before and behind hostile texts.
func TestNoAmountOfTextHidesADeniedCommand(t *testing.T) {
	must.Long(t)
	t.Parallel()
	ws, _ := must.Workspace(t)
	a := newAnalyser(ws)
	p := judging(t, ws, 0)
	for name, script := range hostileScripts(t) {
		if len(script) > hostileSize {
			t.Errorf("%s: it has %d bytes", name, len(script))
		}
		if d := p.Decide(a.Effects("sudo id\n"+script, ws)); d.Action != policy.Deny {
			t.Errorf("%s, behind a denied command: %v by %s", name, d.Action, d.Rule)
		}
	}
	for _, script := range []string{
		fill("", "a;", "sudo id"), fill("", "ls x%d;", `su"do" id`), fill("", "(a);", "(sudo id)"), nest(20000, "(", "sudo id", ")"),
		fill("", "x=a; ", "env sudo id"), fill("", "env ", "sudo id"), fill("a | ", "xargs ", "sudo id"), fill("find . ", "-exec find . ", `-exec sudo id \;`),
		fill("if a; then a; ", "elif a; then a; ", "else sudo id; fi"), fill("a", "|a", "|sudo id"), fill("a", "&&a", "&& sudo id"),
		"f() { sudo id; } && f", "function f { a; } | sudo id",
		"x=" + strings.Repeat("y", 32<<10) + ";" + fill("", "a $x;", "")[:32000] + "\nsudo id", fill("x=a;", "x+=aaaaaaaa;", "sudo id"),
	} {
		if d := p.Decide(a.Effects(script, ws)); d.Action != policy.Deny {
			t.Errorf("%.60s…%s: %v by %s", script, script[max(0, len(script)-40):], d.Action, d.Rule)
		}
	}
}

// TestWhatIsBeyondTheBoundsIsNeverAllowed allows all but a command at the end.
func TestWhatIsBeyondTheBoundsIsNeverAllowed(t *testing.T) {
	must.Long(t)
	t.Parallel()
	f := policy.File{Defaults: permissive(), Commands: []policy.Rule{{ID: "privilege", Action: policy.Deny, Run: []string{"sudo **"}}}}
	f.Defaults.UnknownRead, f.Defaults.UnknownWrite = policy.Allow, policy.Allow
	decide := judge(t, f)
	for name, script := range hostileScripts(t) {
		const denied = "\nsudo id"
		script = script[:min(len(script), hostileSize-len(denied))] + denied
		if d := decide(script); d.Action == policy.Allow {
			t.Errorf("%s, before a denied command: allowed by %s", name, d.Rule)
		}
	}
}

func TestALongDocumentIsNoHostileText(t *testing.T) {
	t.Parallel()
	ws, _ := must.Workspace(t)
	a := newAnalyser(ws)
	p := judging(t, ws, 0)
	for name, line := range map[string]string{
		"prose":   "He said that it's done; then, while we waited (for a case), nobody did.\n",
		"Go":      "func f%d(x []int) (err error) {\n\tif x[0] > 1 && y { return fmt.Errorf(`a %s`, b) }\n}\n",
		"Python":  "for i in range(%d):\n    if x[i] == '\\n':\n        print(f\"{i}\")\n",
		"shell":   "while read -r x; do case $x in a) sudo id;; esac; done < \"$1\"\n",
		"JSON":    `{"a%d": [1, {"b": "c\\n"}]},` + "\n",
		"numbers": "1 2 3 4 5 6 7 8 9\n",
		"letters": "a b c d e f g\n",
		"lines":   "\n",
	} {
		script := fill("cat > src/notes.txt <<'EOF'\n", line, "EOF\n")
		if len(script) < hostileSize-200 {
			t.Errorf("%s: it has %d bytes", name, len(script))
		}
		if d := p.Decide(a.Effects(script, ws)); d.Action != policy.Allow {
			t.Errorf("%s: %v by %s: %s", name, d.Action, d.Rule, d.Reason)
		}
	}
}

// fill repeats a piece up to hostileSize; %d in it is its number.
func fill(before, piece, after string) string {
	var out strings.Builder
	out.WriteString(before)
	for n := 0; ; n++ {
		text := strings.ReplaceAll(piece, "%d", fmt.Sprint(n))
		if out.Len()+len(text)+len(after) > hostileSize {
			break
		}
		out.WriteString(text)
	}
	return out.String() + after
}

func nest(n int, before, middle, after string) string {
	return strings.Repeat(before, n) + middle + strings.Repeat(after, n)
}

// broken panics for one file.
type broken struct{ Resolver }

func (b broken) Canonical(path string) string {
	if strings.Contains(path, "/trap") {
		panic("a fault")
	}
	return b.Resolver.Canonical(path)
}

func TestAnAnalysisThatFailsAllowsNothing(t *testing.T) {
	t.Parallel()
	ws, _ := must.Workspace(t)
	a := New(Options{Workspace: ws, Resolver: broken{Host()}})
	for _, script := range []string{"cat trap/x; ls", "GIT_EDITOR='cat trap/x' git log; ls"} {
		if !slices.ContainsFunc(a.Effects(script, ws), func(e policy.Effect) bool { return e.Kind == policy.Opaque && !e.Code && !e.Possible }) {
			t.Errorf("%s: %v", script, a.Effects(script, ws))
		}
	}
}
