package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

func policyCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{Use: "policy", Short: "Write, check, try and improve the policy; nothing is run"}
	cmd.AddCommand(policyInitCommand(g), policyCheckCommand(g), policyExplainCommand(g), policyTestCommand(g),
		policySuggestCommand(g), policyDiffCommand(g), policySchemaCommand(g))
	return cmd
}

// judge is what decides about calls without a daemon: the tools, which tell what
// a call does, and a policy. It runs nothing.
type judge struct {
	cfg      config.Config
	registry *tools.Registry
	policy   *policy.Policy
}

// newJudge makes the judge of a configuration.
func newJudge(cfg config.Config) (*judge, error) {
	registry, err := newRegistry(cfg, shared{}, nil, nil)
	if err != nil {
		return nil, &exitError{exitFailed, err}
	}
	p, err := loadPolicy(cfg)
	if err != nil {
		return nil, err
	}
	return &judge{cfg, registry, p}, nil
}

// with is the same judge under another policy file.
func (j *judge) with(file string) (*judge, error) {
	other := *j
	var err error
	if other.cfg.Policy, err = filepath.Abs(file); err != nil {
		return nil, &exitError{exitFailed, err}
	}
	other.policy, err = loadPolicy(other.cfg)
	return &other, err
}

// effects are what a call does, as the daemon would find it.
func (j *judge) effects(tool string, arguments json.RawMessage) ([]policy.Effect, error) {
	t, _, ok := j.registry.Lookup(tool)
	if !ok {
		return nil, errors.New(j.registry.Unknown(tool))
	}
	inv, err := t.Build(arguments)
	if err != nil {
		return nil, err
	}
	return inv.Effects(), nil
}

func policyInitCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "init [FILE]", Short: "Write a commented policy to start from", Args: cobra.MaximumNArgs(1),
		Long: "Writes the built-in policy, commented, to FILE, or to policy.yaml beside the\nconfiguration file. It never replaces a file.",
		RunE: func(_ *cobra.Command, args []string) error { return g.initPolicy(args) },
	}
}

func (g *global) initPolicy(args []string) error {
	path, err := starterPath(args)
	if err != nil {
		return &exitError{exitFailed, err}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return &exitError{exitFailed, fmt.Errorf("cannot make the folder of the policy: %w", err)}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return &exitError{exitFailed, fmt.Errorf("%s exists already and stays as it is; name another file", path)}
	}
	if err != nil {
		return &exitError{exitFailed, fmt.Errorf("cannot write the policy: %w", err)}
	}
	_, err = f.WriteString(starter())
	if err := errors.Join(err, f.Close()); err != nil {
		return &exitError{exitFailed, fmt.Errorf("cannot write the policy: %w", err)}
	}
	if err := g.print(map[string]string{"policy": path}, path+"\n"); err != nil || g.json {
		return err
	}
	fmt.Fprintf(g.std.err, "change it, then: toold policy check %s && toold serve --policy %[1]s\n", path)
	return nil
}

// starterPath is where a policy is written that has been given no place.
func starterPath(args []string) (string, error) {
	if len(args) == 1 {
		return filepath.Abs(args[0])
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("cannot tell where configuration files lie: %w; name a file", err)
	}
	return filepath.Join(dir, "toold", "policy.yaml"), nil
}

// starter is the built-in policy as somebody's own.
func starter() string {
	_, rules, _ := strings.Cut(string(config.CarefulPolicy()), "\n")
	return "# The policy of this user. Use it with --policy, TOOLD_POLICY or `policy:` in the\n" +
		"# configuration. Try it: toold policy explain -- COMMAND\n" + strings.Replace(rules, "name: careful", "name: mine", 1)
}
