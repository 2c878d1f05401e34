// Package judge tests policies on calls, files, cases and the journal, for toold policy. It runs nothing.
package judge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/internal/describe"
	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/policy/check"
	"github.com/toold/toold/tools"
)

// Judge decides calls like the daemon of a configuration. It runs nothing.
type Judge struct {
	check.Judge
	cfg config.Config
}

// New returns the judge of a configuration.
func New(cfg config.Config) (*Judge, error) {
	registry, err := daemon.Tools(cfg)
	if err != nil {
		return nil, err
	}
	p, err := daemon.LoadPolicy(cfg)
	if err != nil {
		return nil, err
	}
	return &Judge{check.Judge{Policy: p.Within(confinedAs(cfg)), Effects: effectsOf(registry)}, cfg}, nil
}

// confinedAs returns how this machine confines the calls of a configuration, or the zero value if it cannot.
func confinedAs(cfg config.Config) policy.Confinement {
	profile, _, err := daemon.Confine(context.Background(), cfg)
	if err != nil {
		return policy.Confinement{}
	}
	return dispatch.Confinement(profile)
}

func effectsOf(registry *tools.Registry) func(string, json.RawMessage) ([]policy.Effect, error) {
	return func(tool string, arguments json.RawMessage) ([]policy.Effect, error) {
		t, _, ok := registry.Lookup(tool)
		if !ok {
			return nil, errors.New(registry.Unknown(tool))
		}
		inv, err := t.Build(arguments)
		if err != nil {
			return nil, err
		}
		return inv.Effects(), nil
	}
}

// With returns a judge with another policy file.
func (j *Judge) With(file string) (*check.Judge, error) {
	cfg := j.cfg
	cfg.Policy = Absolute(file)
	p, err := daemon.LoadPolicy(cfg)
	if err != nil {
		return nil, err
	}
	return &check.Judge{Policy: p.Within(confinedAs(cfg)), Effects: j.Effects}, nil
}

// Absolute makes a path absolute, if possible.
func Absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// Checked is a checked policy.
type Checked struct {
	Policy   string          `json:"policy"`
	Rules    int             `json:"rules"`
	Warnings []string        `json:"warnings"`
	Default  []check.Shift   `json:"default,omitempty"` // everyday commands that the built-in policy decides differently
	Faults   []*config.Error `json:"faults,omitempty"`
}

// Faults returns the faults of files that an error contains.
func Faults(err error) (list []*config.Error) {
	var several interface{ Unwrap() []error }
	var placed *config.Error
	switch {
	case errors.As(err, &several):
		for _, err := range several.Unwrap() {
			list = append(list, Faults(err)...)
		}
		return list
	case errors.As(err, &placed):
		return append(list, placed)
	}
	return append(list, &config.Error{Message: err.Error()})
}

// Check checks the policy of a configuration.
func Check(cfg config.Config) (Checked, error) {
	j, err := New(cfg)
	if err != nil {
		return Checked{}, err
	}
	f := j.Policy.User()
	c := Checked{Policy: cfg.PolicyName(), Rules: len(f.Commands) + len(f.Paths) + len(f.Net), Warnings: append([]string{}, j.Policy.Warnings()...)}
	c.Warnings = append(c.Warnings, writableByOthers(cfg.Policy)...)
	found, err := config.PlacePolicyFaults(cfg.Policy, j.Lint())
	if err != nil {
		return Checked{}, console.Exit(console.ExitConfig, err)
	}
	for _, w := range found {
		c.Warnings = append(c.Warnings, fmt.Sprintf("%s:%d:%d: %s", w.File, w.Line, w.Column, w.Message))
	}
	if cfg.Policy == "" || f.Defaults.Confined != policy.Deny {
		return c, nil
	}
	cfg.Policy = ""
	built, err := New(cfg)
	if err != nil {
		return Checked{}, err
	}
	c.Default = j.Shifts(&built.Judge)
	return c, nil
}

// CheckFiles checks policy files, or the policy of the configuration. text describes the result; the error contains
// the faults.
func CheckFiles(cfg config.Config, files []string) (list []Checked, text string, err error) {
	var failed []error
	list = []Checked{}
	for _, file := range orConfigured(files, cfg) {
		if file != "" {
			cfg.Policy = Absolute(file)
		}
		c, err := Check(cfg)
		if err != nil {
			failed = append(failed, err)
			list = append(list, Checked{Policy: cfg.PolicyName(), Warnings: []string{}, Faults: Faults(err)})
			continue
		}
		list = append(list, c)
		text += c.String()
	}
	return list, text, errors.Join(failed...)
}

func orConfigured(files []string, cfg config.Config) []string {
	if len(files) == 0 {
		return []string{cfg.Policy}
	}
	return files
}

// String returns the result as text.
func (c Checked) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, %s\n", c.Policy, describe.Count(c.Rules, "rule"), describe.Count(len(c.Warnings), "warning"))
	for _, w := range c.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", display.Short(w))
	}
	b.WriteString(shiftsText(c.Default))
	return b.String()
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
	return []string{fmt.Sprintf("%s: others can change it; take that away: chmod go-w %s", file, display.Operand(file))}
}

// Tests are the results of examples and cases.
type Tests struct {
	Passed   int      `json:"passed"`
	Failures []string `json:"failures"`
}

// Try tests the examples in policy files, or in the policy of the configuration, and files of cases (.jsonl).
func Try(cfg config.Config, files []string) (Tests, error) {
	r := Tests{Failures: []string{}}
	for _, file := range orConfigured(files, cfg) {
		try := r.examples
		if strings.HasSuffix(file, ".jsonl") {
			try = r.cases
		}
		if err := try(cfg, file); err != nil {
			return r, err
		}
	}
	return r, nil
}

// String returns the result as text.
func (r Tests) String() string {
	return strings.Join(append(slices.Clone(r.Failures), fmt.Sprintf("%d passed, %d failed\n", r.Passed, len(r.Failures))), "\n")
}

func (r *Tests) examples(cfg config.Config, file string) error {
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

func (r *Tests) cases(cfg config.Config, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("cannot read the cases: %w", err)
	}
	judges := make(map[string]*Judge)
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
				own.Policy = filepath.Join(filepath.Dir(Absolute(file)), c.Policy)
			}
			if j, err = New(own); err != nil {
				return console.Exit(console.ExitConfig, fmt.Errorf("%s: %w", where, err))
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

// WriteStarter writes a commented policy as a template to a new file: the one in files that is not "", or the default
// policy file.
func WriteStarter(name string, files []string) (path string, err error) {
	text, err := starter(name)
	if err != nil {
		return "", console.Usage(fmt.Errorf("--for: %w", err))
	}
	if path, err = starterPath(files); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("cannot make the directory of the policy: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("%s exists already and stays as it is; name another file", path)
	}
	if err != nil {
		return "", fmt.Errorf("cannot write the policy: %w", err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("cannot write the policy: %w", err)
	}
	return path, nil
}

// Starts says how a daemon takes up a policy file, which may not be in a workspace.
func Starts(path string) string {
	dir, err := os.Getwd()
	in, outside := filepath.Rel(dir, path)
	if err == nil && outside == nil && filepath.IsLocal(in) {
		return "a daemon takes it only from outside the workspace (move it there first): toold up --policy FILE"
	}
	return "toold up --policy " + display.Operand(path) + " starts a daemon with it"
}

func starter(name string) (string, error) {
	text, err := config.StarterPolicy(name)
	_, rules, _ := strings.Cut(string(text), "\n")
	return "# The policy of this user. Use it with --policy, TOOLD_POLICY or `policy:` in the\n" +
		"# configuration. Try it: toold policy explain -- COMMAND\n" + strings.Replace(rules, "name: "+name+"\n", "name: mine\n", 1), err
}

// starterPath returns the one named file, or the default path of the user's policy.
func starterPath(named []string) (string, error) {
	switch named = slices.DeleteFunc(slices.Clone(named), func(file string) bool { return file == "" }); len(named) {
	case 0:
	case 1:
		return filepath.Abs(named[0])
	default:
		return "", console.Usage(fmt.Errorf("FILE is %s and --policy is %s: the policy is written to one file; name one", display.Short(named[0]), display.Short(named[1])))
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("cannot find the directory of configuration files: %w; name a file", err)
	}
	return filepath.Join(dir, "toold", "policy.yaml"), nil
}
