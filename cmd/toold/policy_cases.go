package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/policy"
)

// testCase is one line of a case file. At least one of expect and must_not is
// there; the notes are for people.
type testCase struct {
	ID        string          `json:"id"`
	Policy    string          `json:"policy"` // a file, from the folder of the cases
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Command   string          `json:"command"` // instead of tool and arguments
	Dir       string          `json:"cwd"`
	Expect    string          `json:"expect"`
	MustNot   []string        `json:"must_not"`

	Kind     string `json:"kind"`
	Category string `json:"category"`
	Why      string `json:"why"`
	Source   string `json:"source"`
	Verified string `json:"verified"`
}

// testReport counts cases and tells the failed ones.
type testReport struct {
	Passed   int      `json:"passed"`
	Failures []string `json:"failures"`
}

func (r *testReport) add(failure string) {
	if failure == "" {
		r.Passed++
	} else {
		r.Failures = append(r.Failures, failure)
	}
}

func policyTestCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "test [FILE...]", Short: "Try the examples of policy files, and files of cases", Args: cobra.ArbitraryArgs,
		Long: "Tries the examples in policy files (rules' examples: match, not_match) and cases in\n" +
			"files that end in .jsonl, one a line:\n\n" +
			"  {\"command\": \"git push\", \"expect\": \"ask\"}\n" +
			"  {\"tool\": \"read_file\", \"arguments\": {\"file_path\": \".env\"}, \"must_not\": [\"allow\"], \"policy\": \"my.yaml\"}\n\n" +
			"Without FILE the policy that holds is tried. The exit code is 1 when one fails.",
		RunE: func(_ *cobra.Command, args []string) error { return g.testPolicy(args) },
	}
}

func (g *global) testPolicy(files []string) error {
	cfg, err := g.inspect()
	if err != nil {
		return err
	}
	if len(files) == 0 {
		files = []string{cfg.Policy}
	}
	report := testReport{Failures: []string{}}
	for _, file := range files {
		try := report.examples
		if strings.HasSuffix(file, ".jsonl") {
			try = report.cases
		}
		if err := try(cfg, file); err != nil {
			return err
		}
	}
	text := strings.Join(append(slices.Clone(report.Failures), fmt.Sprintf("%d passed, %d failed\n", report.Passed, len(report.Failures))), "\n")
	if err := g.print(report, text); err != nil {
		return &exitError{exitFailed, err}
	}
	if len(report.Failures) > 0 {
		return &exitError{exitFailed, nil}
	}
	return nil
}

// examples tries the examples of a policy file, each rule's by itself.
func (r *testReport) examples(cfg config.Config, file string) error {
	f, err := config.ReadPolicy(file)
	if err != nil {
		return &exitError{exitConfig, err}
	}
	bare := f
	bare.Commands = slices.Clone(f.Commands)
	for i := range bare.Commands {
		bare.Commands[i].Match, bare.Commands[i].NotMatch = nil, nil
	}
	o := policyOptions(cfg)
	if _, err := policy.Compile(o, bare); err != nil {
		return &exitError{exitConfig, err}
	}
	for _, rule := range f.Commands {
		for _, text := range rule.Match {
			r.add(exampleFailure(o, f.Name, rule, []string{text}, nil))
		}
		for _, text := range rule.NotMatch {
			r.add(exampleFailure(o, f.Name, rule, nil, []string{text}))
		}
	}
	return nil
}

// exampleFailure compiles a rule with one of its examples.
func exampleFailure(o policy.Options, name string, rule policy.Rule, match, notMatch []string) string {
	rule.Match, rule.NotMatch = match, notMatch
	if _, err := policy.Compile(o, policy.File{Name: name, Commands: []policy.Rule{rule}}); err != nil {
		return err.Error()
	}
	return ""
}

// cases tries the calls of a case file.
func (r *testReport) cases(cfg config.Config, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return &exitError{exitFailed, fmt.Errorf("cannot read the cases: %w", err)}
	}
	judges := make(map[string]*judge)
	for i, line := range bytes.Split(text, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		where := fmt.Sprintf("%s:%d", file, i+1)
		c, err := readCase(line)
		if err != nil {
			return &exitError{exitConfig, fmt.Errorf("%s: %w", where, err)}
		}
		j := judges[c.Policy]
		if j == nil {
			own := cfg
			if c.Policy != "" {
				own.Policy = filepath.Join(filepath.Dir(absolute(file)), c.Policy)
			}
			if j, err = newJudge(own); err != nil {
				return err
			}
			judges[c.Policy] = j
		}
		r.add(c.failure(j, where))
	}
	return nil
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// readCase reads one line strictly: a misspelt expectation would expect nothing.
func readCase(line []byte) (testCase, error) {
	var c testCase
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return c, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return c, errors.New("one case a line")
	}
	if c.Expect == "" && len(c.MustNot) == 0 {
		return c, errors.New("neither expect nor must_not says what the decision should be")
	}
	for _, word := range append(c.MustNot, c.Expect) {
		if _, err := policy.ParseAction(word); err != nil && word != "" {
			return c, err
		}
	}
	if (c.Command == "") == (c.Tool == "") {
		return c, errors.New("a case has either a command, or a tool with its arguments")
	}
	return c, c.complete()
}

// complete turns command and cwd into the arguments of a call.
func (c *testCase) complete() error {
	arguments := make(map[string]any)
	if c.Command != "" {
		c.Tool, arguments["command"] = "bash", c.Command
	} else if err := json.Unmarshal(c.Arguments, &arguments); err != nil {
		return fmt.Errorf("arguments: %v", err)
	} else if arguments == nil { // null
		return errors.New("arguments: expected an object")
	}
	if c.Dir != "" {
		arguments["cwd"] = c.Dir
	}
	var err error
	c.Arguments, err = json.Marshal(arguments)
	return err
}

// failure says how the decision is not the expected one, or nothing. A call that
// is refused before the policy sees it does not run: that is a denial.
func (c *testCase) failure(j *judge, where string) string {
	d := policy.Decision{Action: policy.Deny, Reason: "the call is refused before the policy sees it"}
	effects, err := j.effects(c.Tool, c.Arguments)
	if err == nil {
		d = j.policy.Decide(effects)
	} else {
		d.Reason += ": " + err.Error()
	}
	got := d.Action.String()
	if (c.Expect == "" || c.Expect == got) && !slices.Contains(c.MustNot, got) {
		return ""
	}
	want := c.Expect
	if want == "" {
		want = "not " + strings.Join(c.MustNot, " or ")
	}
	return fmt.Sprintf("%s: %s: got %s, want %s: %s [%s]", where, callText(c.Tool, c.Arguments), got, want, oneLine(d.Reason), d.Rule)
}
