//go:build linux

package conformance

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// everydayFile holds commands and idioms of ten ecosystems, written down before the
// policy was tuned for them, with what a fixture must have for them to work.
const everydayFile = "testdata/everyday.jsonl"

// shares counts decisions.
type shares struct{ Allow, Ask, Deny int }

func (s *shares) add(action string) {
	switch action {
	case "allow":
		s.Allow++
	case "ask":
		s.Ask++
	default:
		s.Deny++
	}
}

func (s shares) String() string {
	return fmt.Sprintf("%d allowed, %d asked, %d denied", s.Allow, s.Ask, s.Deny)
}

// leastUnasked is how many of 100 everyday commands run unasked.
const leastUnasked = 97

// everydayFloor is what the built-in policy decided when this was last changed: it
// may allow more of the commands, and deny fewer.
var everydayFloor = shares{Allow: 876, Ask: 9, Deny: 0}

// TestEverydayCommandsAreNotDecidedMoreStrictly judges the everyday commands by the
// built-in policy. With -v it prints the shares of each ecosystem.
func TestEverydayCommandsAreNotDecidedMoreStrictly(t *testing.T) {
	t.Parallel()
	runner := startPolicyRunner(t)
	runner.policies = filepath.Join("..", "internal", "config")
	var all shares
	by := make(map[string]*shares)
	for _, l := range everydayCases(t) {
		d, why := runner.run(t.Context(), l)
		if d.Action == "" {
			t.Fatalf("%s: %s", l.c.ID, why)
		}
		if by[l.c.Category] == nil {
			by[l.c.Category] = &shares{}
		}
		all.add(d.Action)
		by[l.c.Category].add(d.Action)
		if d.Action == "deny" {
			t.Logf("denied by %s: %s", d.Rule, l.c.Arguments["command"])
		}
	}
	for name, s := range by {
		t.Logf("%s: %v", name, s)
	}
	t.Logf("everyday: %v of %d", all, len(everydayCases(t)))
	if all.Allow < everydayFloor.Allow || all.Deny > everydayFloor.Deny {
		t.Errorf("%v, where it was %v", all, everydayFloor)
	}
	if cases := everydayCases(t); all.Allow*100 < leastUnasked*len(cases) {
		t.Errorf("%d of %d run unasked, and at least %d of 100 should", all.Allow, len(cases), leastUnasked)
	}
}

// everydayCases reads the everyday commands as cases of the built-in policy.
func everydayCases(t *testing.T) (cases []policyLine) {
	t.Helper()
	data, err := os.ReadFile(everydayFile)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var e struct{ ID, Ecosystem, Command string }
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Command == "" {
			t.Fatalf("%s: %q: %v", everydayFile, line, err)
		}
		cases = append(cases, bashCase(e.ID, e.Ecosystem, "careful", e.Command))
	}
	return cases
}

// bashCase is a case that judges a script.
func bashCase(id, category, policy, script string) policyLine {
	return policyLine{c: policyCase{ID: id, Category: category, Policy: policy, Tool: "bash", Arguments: map[string]any{"command": script}}}
}

// decisionsFile holds the decision on every case of policy.jsonl, on every everyday
// command and every script of hiding.txt, with the rule and the effects.
const decisionsFile = "testdata/decisions.txt"

// TestDecisionsAreTheRecordedOnes compares all decisions and effects with those of
// decisionsFile, so that a change of the analysis shows all that it changes. It is for
// whoever makes one: TOOLD_DECISIONS=compare plays it, and TOOLD_DECISIONS=update
// records what is decided now.
func TestDecisionsAreTheRecordedOnes(t *testing.T) {
	mode := os.Getenv("TOOLD_DECISIONS")
	if mode != "compare" && mode != "update" {
		t.Skip("TOOLD_DECISIONS is neither compare nor update")
	}
	runner := startPolicyRunner(t)
	var got strings.Builder
	cases, err := readPolicyCases(runner.fixtureDirs, filepath.Join("testdata", "policy.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range cases {
		runner.record(t, &got, l)
	}
	runner.policies = filepath.Join("..", "internal", "config")
	for _, l := range slices.Concat(everydayCases(t), hidingCases(t)) {
		runner.record(t, &got, l)
	}
	if mode == "update" {
		if err := os.WriteFile(decisionsFile, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(decisionsFile)
	if err != nil {
		t.Fatal(err)
	}
	differences(t, string(want), got.String())
}

// hidingCases are the scripts of hiding.txt as cases of the strict policy: under it what
// is allowed must be what bash runs.
func hidingCases(t *testing.T) (cases []policyLine) {
	t.Helper()
	data, err := os.ReadFile("../shell/testdata/hiding.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		script := strings.ReplaceAll(strings.TrimSuffix(line, "\n"), `\n`, "\n")
		cases = append(cases, bashCase(fmt.Sprintf("Hi%04d", len(cases)+1), "", "strict", script))
	}
	return cases
}

// ofMachine reports whether an effect is on a name in the root directory that the
// script does not hold: a pattern has matched it, on this machine.
func ofMachine(script, effect string) bool {
	_, path, _ := strings.Cut(effect, " ")
	return strings.LastIndexByte(path, '/') == 0 && !strings.Contains(script, path)
}

// record appends one line: the case, its decision, the rule and the effects.
func (c *policyRunner) record(t *testing.T, to *strings.Builder, l policyLine) {
	t.Helper()
	d, why := c.run(t.Context(), l)
	if d.Action == "" {
		t.Fatalf("%s: %s", l.c.ID, why)
	}
	var effects []string
	script, _ := l.c.Arguments["command"].(string)
	for _, e := range d.Effects {
		if (e.Kind == "read" || e.Kind == "write") && ofMachine(script, e.Text) {
			continue
		}
		effects = append(effects, cmp.Or(e.Action, "-")+" "+e.Kind+" "+e.Text)
	}
	line := fmt.Sprintf("%s %s %s | %s", l.c.ID, d.Action, d.Rule, strings.Join(effects, "; "))
	above := filepath.Dir(c.ws)
	top := filepath.Dir(above)
	line = strings.NewReplacer(c.ws, "@WS@", c.home, "@HOME@", c.out, "@OUT@", above, "@ABOVE@", top, "@TOP@", filepath.Dir(top), "@TMP@", "\n", `\n`).Replace(line)
	fmt.Fprintln(to, line)
}

// differences reports the lines in which two records differ.
func differences(t *testing.T, want, got string) {
	t.Helper()
	recorded := make(map[string]string)
	for line := range strings.Lines(want) {
		id, rest, _ := strings.Cut(line, " ")
		recorded[id] = rest
	}
	for line := range strings.Lines(got) {
		id, rest, _ := strings.Cut(line, " ")
		if recorded[id] != rest {
			t.Errorf("%s\n got %swant %s", id, rest, recorded[id])
		}
		delete(recorded, id)
	}
	for id := range recorded {
		t.Errorf("%s is recorded, and there is no such case", id)
	}
}
