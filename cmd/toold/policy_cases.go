package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/policy/check"
)

type testReport struct {
	Passed   int      `json:"passed"`
	Failures []string `json:"failures"`
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
	if err := g.Print(report, text); err != nil {
		return err
	}
	if len(report.Failures) > 0 {
		return console.Exit(console.ExitFailed, nil)
	}
	return nil
}

func (r *testReport) examples(cfg config.Config, file string) error {
	f, err := config.ReadPolicy(file)
	if err != nil {
		return console.Exit(console.ExitConfig, err)
	}
	passed, failures, err := check.Examples(daemon.PolicyOptions(cfg), f)
	if err != nil {
		return console.Exit(console.ExitConfig, err)
	}
	r.Passed, r.Failures = r.Passed+passed, append(r.Failures, failures...)
	return nil
}

func (r *testReport) cases(cfg config.Config, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("cannot read the cases: %w", err)
	}
	judges := make(map[string]*judge)
	for i, line := range bytes.Split(text, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		where := fmt.Sprintf("%s:%d", file, i+1)
		c, err := check.ReadCase(line)
		if err != nil {
			return console.Exit(console.ExitConfig, fmt.Errorf("%s: %w", where, err))
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
		if failure := c.Failure(&j.Judge); failure != "" {
			r.Failures = append(r.Failures, fmt.Sprintf("%s: %s: %s", where, dispatch.CallText(c.Tool, c.Arguments), display.Short(failure)))
			continue
		}
		r.Passed++
	}
	return nil
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
