package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/policy"
)

func policyCheckCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "check [FILE...]", Short: "Check policy files, and warn of rules that do not do what they seem to", Args: cobra.ArbitraryArgs,
		Long: "Reads policy files as the daemon would: keys, patterns, examples. A fault is shown\n" +
			"with its place and ends with exit code 3; warnings do not change the exit code.\n" +
			"Without FILE the policy that holds is checked.",
		RunE: func(_ *cobra.Command, args []string) error { return g.checkPolicy(args) },
	}
}

// checked is what check says of one file.
type checked struct {
	Policy   string   `json:"policy"`
	Rules    int      `json:"rules"`
	Warnings []string `json:"warnings"`
}

func (g *global) checkPolicy(files []string) error {
	cfg, err := g.load()
	if err != nil {
		return err
	}
	if len(files) == 0 {
		files = []string{cfg.Policy}
	}
	list := []checked{}
	var text strings.Builder
	for _, file := range files {
		if file != "" {
			cfg.Policy = absolute(file)
		}
		c, err := checkFile(cfg)
		if err != nil {
			return err
		}
		list = append(list, c)
		fmt.Fprintf(&text, "%s: %d rules, %d warnings\n", c.Policy, c.Rules, len(c.Warnings))
		for _, w := range c.Warnings {
			fmt.Fprintf(&text, "warning: %s\n", oneLine(w))
		}
	}
	return g.print(list, text.String())
}

func checkFile(cfg config.Config) (checked, error) {
	p, err := loadPolicy(cfg)
	if err != nil {
		return checked{}, err
	}
	f, err := config.ReadPolicy(cfg.Policy)
	if err != nil {
		return checked{}, &exitError{exitConfig, err}
	}
	c := checked{Policy: policyName(cfg), Rules: len(f.Commands) + len(f.Paths) + len(f.Net), Warnings: append([]string{}, p.Warnings()...)}
	c.Warnings = append(c.Warnings, writableByOthers(cfg.Policy)...)
	l := linter{policy: p, options: policyOptions(cfg), file: f.Name}
	for _, r := range f.Commands {
		l.command(r)
	}
	for _, r := range f.Paths {
		l.path(r)
	}
	for _, r := range f.Net {
		l.host(r)
	}
	l.variables(f.Env)
	c.Warnings = append(c.Warnings, l.warnings...)
	return c, nil
}

// writableByOthers warns of a policy file that somebody else can change.
func writableByOthers(file string) []string {
	info, err := os.Stat(file)
	if file == "" || err != nil || info.Mode().Perm()&0o022 == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: others can change it; take that away: chmod go-w %[1]s", file)}
}

// linter looks for rules that do not do what they seem to. It tries them: a
// warning names a command or a path for which the policy was asked.
type linter struct {
	policy   *policy.Policy
	options  policy.Options
	file     string
	warnings []string
}

func (l *linter) warn(r policy.Rule, format string, args ...any) {
	l.warnings = append(l.warnings, fmt.Sprintf("%s:%d: rule %q: ", l.file, r.Line, r.ID)+fmt.Sprintf(format, args...))
}

// command tries a rule about commands on commands of its own patterns.
func (l *linter) command(r policy.Rule) {
	for _, pattern := range r.Run {
		first := append(strings.Fields(pattern), "", "")[1]
		for _, sample := range samples(pattern) {
			words := strings.Fields(sample)
			if name := words[0]; r.Action == policy.Allow && policy.RunsAnything(name) && (first == "*" || first == "**") {
				l.warn(r, "%s runs whatever its arguments say, so that %q allows more than it names; name the whole command", name, pattern)
			}
			if len(r.Dirs) == 0 {
				l.tried(r, sample, policy.Effect{Kind: policy.Exec, Argv: literal(words), Dirs: []string{l.options.Workspace}})
			}
		}
	}
}

// tried warns when a stricter decision than a rule's holds for what it names.
func (l *linter) tried(r policy.Rule, sample string, e policy.Effect) {
	switch d := l.policy.Decide([]policy.Effect{e}); {
	case d.Action >= r.Action, d.Rule == r.ID, len(r.Except) > 0 && r.Action != policy.Allow:
	case strings.HasPrefix(d.Rule, "defaults."):
		l.warn(r, "it does not match %q, which its pattern names: %s", sample, d.Reason)
	default:
		l.warn(r, "%q is decided by rule %q (%s): %s; put an exception into that rule, or narrow this one", sample, d.Rule, d.Source, d.Action)
	}
}

// path tries a rule about paths on paths of its own patterns, and warns of a
// folder that is named without what is in it.
func (l *linter) path(r policy.Rule) {
	ops := r.Ops
	if len(ops) == 0 {
		ops = []policy.Kind{policy.Read, policy.Write}
	}
	for _, pattern := range r.Paths {
		places := strings.NewReplacer("${workspace}", l.options.Workspace, "${home}", l.options.Home, "${tmp}", l.options.Tmp)
		path := places.Replace(pattern)
		if info, err := os.Stat(path); err == nil && info.IsDir() && !strings.Contains(pattern, "*") {
			l.warn(r, "%q is a folder, and the pattern does not mean what is in it; write %q", pattern, strings.TrimSuffix(pattern, "/")+"/**")
		}
		path = strings.NewReplacer("**", "sample", "*", "sample").Replace(path)
		if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "{}[]?$") || len(r.Except) > 0 {
			continue
		}
		for _, op := range ops {
			l.tried(r, op.String()+" "+path, policy.Effect{Kind: op, Path: path, Canonical: resolved(path)})
		}
	}
}
