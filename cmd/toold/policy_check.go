package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/judge"
	"github.com/toold/toold/policy"
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

func (g *global) checkPolicy(files []string) error {
	cfg, err := g.inspect()
	if err != nil {
		return err
	}
	if len(files) == 0 {
		files = []string{cfg.Policy}
	}
	list := []judge.Checked{}
	var failed []error
	var text strings.Builder
	for _, file := range files {
		if file != "" {
			cfg.Policy = judge.Absolute(file)
		}
		c, err := judge.Check(cfg)
		if err != nil {
			failed = append(failed, err)
			list = append(list, judge.Checked{Policy: daemon.PolicyName(cfg), Warnings: []string{}, Faults: judge.Faults(err)})
			continue
		}
		list = append(list, c)
		text.WriteString(c.String())
	}
	if err := g.Print(list, text.String()); err != nil || len(failed) == 0 {
		return err
	}
	return console.Exit(console.ExitConfig, errors.Join(failed...))
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
			g.Emit(checkedConfig{Config: options.Path, Warnings: []string{}, Faults: judge.Faults(err)})
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

// Exit codes of policy explain --exit-code.
const (
	exitAsks   = 3
	exitDenies = 4
)

func policyExplainCommand(g *global) *cobra.Command {
	var flags callFlags
	var tool, client, agent string
	var coded bool
	cmd := &cobra.Command{
		Use: "explain {ID | -- COMMAND | --tool TOOL [OPERAND]}", Short: "Explain how a call is decided, and what must change for it to be allowed",
		Long: "Explains how the policy decides a call: an old one of the journal by its tool_call_id,\nor a new one. Nothing is run, and no daemon is needed. Of a call that is not\nallowed it lists all that must change in the policy for it to be allowed.",
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := g.judge()
			if err != nil {
				return err
			}
			if cmd.ArgsLenAtDash() < 0 && tool == "" && !cmd.Flags().Changed("arguments") {
				if len(args) != 1 {
					return console.Usage(errors.New("name a tool_call_id, or a command after --, e.g. toold policy explain -- git push"))
				}
				e, err := j.ExplainRecorded(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return g.explained(e, coded)
			}
			arguments, err := flags.build(cmd, cmp.Or(tool, "bash"), operand(args), g.In, g.from)
			if err != nil {
				return console.Usage(err)
			}
			j.Client, j.Agent = client, agent
			e, err := j.Explain(cmp.Or(tool, "bash"), arguments)
			if err != nil {
				return err
			}
			return g.explained(judge.Explanation{Explanation: e}, coded)
		},
	}
	flags.register(cmd)
	cmd.Flags().StringVar(&tool, "tool", "", "the `tool` of the call; default: bash")
	cmd.Flags().StringVar(&client, "client", "agent", "the `name` of the token with which the call comes")
	cmd.Flags().StringVar(&agent, "agent", "", "the `id` of the agent that makes the call")
	cmd.Flags().BoolVar(&coded, "exit-code", false, "end with 0 for allow, 3 for ask, 4 for deny")
	return cmd
}

func (g *global) judge() (*judge.Judge, error) {
	cfg, err := g.inspect()
	if err != nil {
		return nil, err
	}
	return judge.New(cfg)
}

// operand joins words to one script, in which NAME=VALUE stays an assignment.
func operand(words []string) []string {
	if len(words) < 2 {
		return words
	}
	return []string{console.Quote(words, false)}
}

func (g *global) explained(e judge.Explanation, coded bool) error {
	if err := g.Print(e, e.String()); err != nil || !coded || e.Action == policy.Allow {
		return err
	}
	if e.Action == policy.Ask {
		return console.Exit(exitAsks, nil)
	}
	return console.Exit(exitDenies, nil)
}

func policySuggestCommand(g *global) *cobra.Command {
	var since string
	cmd := &cobra.Command{
		Use: "suggest", Short: "Propose rules for what people have approved", Args: cobra.NoArgs,
		Long: "Looks in the journal for calls that a person approved and that worked, and proposes the\nnarrowest rules, about commands, paths, hosts and variables, with which no one would have\nbeen asked; what was approved most comes first. Each was tried: it lets the calls pass from\nwhich it comes. Shown beside it is what else of the journal it would have allowed. Nothing\nis proposed for what failed or was refused, nor for what cannot be analysed. Nothing is\nchanged.",
		RunE: func(cmd *cobra.Command, _ []string) error { return g.suggest(cmd.Context(), since) },
	}
	cmd.Flags().StringVar(&since, "since", "30d", "how far to look back, e.g. `30d` or 12h")
	return cmd
}

func (g *global) suggest(ctx context.Context, since string) error {
	j, err := g.judge()
	if err != nil {
		return err
	}
	history, err := j.History(ctx, since)
	if err != nil {
		return err
	}
	list := j.Proposals(history)
	return g.Print(list, judge.ProposalsText(list))
}

func policyDiffCommand(g *global) *cobra.Command {
	var since string
	cmd := &cobra.Command{
		Use: "diff FILE", Short: "List the calls of the journal that another policy would decide otherwise", Args: one,
		Long: "Judges the calls of the journal by the policy that holds and by FILE, and lists those\nthat FILE decides otherwise. Each different call counts once. Nothing is run.",
		RunE: func(cmd *cobra.Command, args []string) error { return g.diffPolicy(cmd.Context(), args[0], since) },
	}
	cmd.Flags().StringVar(&since, "since", "30d", "how far to look back, e.g. `30d` or 12h")
	return cmd
}

func (g *global) diffPolicy(ctx context.Context, file, since string) error {
	old, err := g.judge()
	if err != nil {
		return err
	}
	next, err := old.With(file)
	if err != nil {
		return err
	}
	history, err := old.History(ctx, since)
	if err != nil {
		return err
	}
	changes := old.Compare(history, next)
	return g.Print(map[string]any{"calls": len(history.Calls), "changes": changes}, judge.ChangesText(len(history.Calls), changes))
}
