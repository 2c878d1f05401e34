package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/policy/check"
)

func policyCheckCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "check [FILE...]", Short: "Check policy files, and warn of rules that do not do what they seem to", Args: cobra.ArbitraryArgs,
		Long: "Reads policy files as the daemon would: keys, patterns, examples. A fault is shown\n" +
			"with its place and ends with exit code 3; warnings do not change the exit code.\n" +
			"Without FILE the policy that holds is checked. Of a file that does not rely on the\n" +
			"sandbox (defaults: confined) it shows what the built-in policy decides otherwise.",
		RunE: func(_ *cobra.Command, args []string) error { return g.checkPolicy(args) },
	}
}

type checked struct {
	Policy   string          `json:"policy"`
	Rules    int             `json:"rules"`
	Warnings []string        `json:"warnings"`
	Default  []check.Shift   `json:"default,omitempty"`
	Faults   []*config.Error `json:"faults,omitempty"`
}

func faultsOf(err error) (list []*config.Error) {
	var several interface{ Unwrap() []error }
	var placed *config.Error
	switch {
	case errors.As(err, &several):
		for _, err := range several.Unwrap() {
			list = append(list, faultsOf(err)...)
		}
		return list
	case errors.As(err, &placed):
		return append(list, placed)
	}
	return append(list, &config.Error{Message: err.Error()})
}

func (g *global) checkPolicy(files []string) error {
	cfg, err := g.inspect()
	if err != nil {
		return err
	}
	if len(files) == 0 {
		files = []string{cfg.Policy}
	}
	list := []checked{}
	var failed []error
	var text strings.Builder
	for _, file := range files {
		if file != "" {
			cfg.Policy = absolute(file)
		}
		c, err := checkFile(cfg)
		if err != nil {
			failed = append(failed, err)
			list = append(list, checked{Policy: daemon.PolicyName(cfg), Warnings: []string{}, Faults: faultsOf(err)})
			continue
		}
		list = append(list, c)
		fmt.Fprintf(&text, "%s: %s, %s\n", c.Policy, console.Count(c.Rules, "rule"), console.Count(len(c.Warnings), "warning"))
		for _, w := range c.Warnings {
			fmt.Fprintf(&text, "warning: %s\n", display.Short(w))
		}
		text.WriteString(shiftsText(c.Default))
	}
	if err := g.Print(list, text.String()); err != nil || len(failed) == 0 {
		return err
	}
	return console.Exit(console.ExitConfig, errors.Join(failed...))
}

func checkFile(cfg config.Config) (checked, error) {
	j, err := newJudge(cfg)
	if err != nil {
		return checked{}, err
	}
	f := j.Policy.User()
	c := checked{Policy: daemon.PolicyName(cfg), Rules: len(f.Commands) + len(f.Paths) + len(f.Net), Warnings: append([]string{}, j.Policy.Warnings()...)}
	c.Warnings = append(c.Warnings, writableByOthers(cfg.Policy)...)
	found, err := config.PlacePolicyFaults(cfg.Policy, j.Lint())
	if err != nil {
		return checked{}, console.Exit(console.ExitConfig, err)
	}
	for _, w := range found {
		c.Warnings = append(c.Warnings, fmt.Sprintf("%s:%d:%d: %s", w.File, w.Line, w.Column, w.Message))
	}
	if cfg.Policy == "" || f.Defaults.Confined != policy.Deny {
		return c, nil
	}
	cfg.Policy = ""
	built, err := newJudge(cfg)
	if err != nil {
		return checked{}, err
	}
	c.Default = j.Shifts(&built.Judge)
	return c, nil
}

func shiftsText(list []check.Shift) string {
	if len(list) == 0 {
		return ""
	}
	by := make(map[string][]string)
	for _, s := range list {
		kind := fmt.Sprintf("%s instead of %s", s.After, s.Before)
		by[kind] = append(by[kind], "`"+s.Command+"`")
	}
	var b strings.Builder
	b.WriteString("note: this file means what it meant. The built-in policy, which relies on the sandbox, decides these otherwise:\n")
	for _, kind := range slices.Sorted(maps.Keys(by)) {
		fmt.Fprintf(&b, "  %s: %s\n", kind, strings.Join(by[kind], ", "))
	}
	b.WriteString("  for the same here: defaults: {confined: allow}, and the rules with class: that toold policy init writes\n")
	return b.String()
}

func writableByOthers(file string) []string {
	info, err := os.Stat(file)
	if file == "" || err != nil || info.Mode().Perm()&0o022 == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: others can change it; take that away: chmod go-w %[1]s", file)}
}

func configCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Check the configuration"}
	cmd.AddCommand(&cobra.Command{
		Use: "check [FILE]", Short: "Check a configuration file as a daemon that starts here would", Args: cobra.MaximumNArgs(1),
		Long: "Reads the configuration that holds, or FILE, together with TOOLD_ variables and flags. A\n" +
			"fault is shown with its place and ends with exit code 3; warnings do not change the exit code.",
		RunE: func(_ *cobra.Command, args []string) error { return g.checkConfig(args) },
	})
	return cmd
}

type checkedConfig struct {
	Config   string          `json:"config"`
	Warnings []string        `json:"warnings"`
	Faults   []*config.Error `json:"faults,omitempty"`
}

func (g *global) checkConfig(files []string) error {
	options := g.options
	if len(files) == 1 {
		options.Path = files[0]
	}
	cfg, err := g.readConfig(options)
	if err != nil {
		if g.JSON {
			g.Emit(checkedConfig{Config: options.Path, Warnings: []string{}, Faults: faultsOf(err)})
		}
		return console.Exit(console.ExitConfig, err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s\n", cmp.Or(cfg.File, "no file; the defaults hold"), console.Count(len(cfg.Warnings), "warning"))
	for _, w := range cfg.Warnings {
		fmt.Fprintf(&text, "warning: %s\n", display.Short(w))
	}
	return g.Print(checkedConfig{Config: cfg.File, Warnings: append([]string{}, cfg.Warnings...)}, text.String())
}
