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
	"github.com/toold/toold/internal/describe"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/judge"
	"github.com/toold/toold/policy"
)

func policyCheckCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "check [FILE...]", Short: "Check policy files, and warn of rules that do not do what they seem to", Args: notEmpty,
		RunE: func(_ *cobra.Command, args []string) error { return g.checkPolicy(args) },
	}
}

func (g *global) checkPolicy(files []string) error {
	cfg, err := g.inspect()
	if err != nil {
		return err
	}
	if len(files) == 0 {
		g.noteOther(cfg)
	}
	list, text, failed := judge.CheckFiles(cfg, files)
	if err := g.Print(list, text); err != nil || failed == nil {
		return err
	}
	return console.Exit(console.ExitConfig, failed)
}

func configCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Check the configuration"}
	cmd.AddCommand(&cobra.Command{
		Use: "check [FILE]", Short: "Check a configuration file as a daemon that starts here would", Args: optional,
		RunE: func(_ *cobra.Command, args []string) error { return g.checkConfig(args) },
	})
	return cmd
}

type checkedConfig struct {
	Config   string          `json:"config"` // "" = no file
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
	fmt.Fprintf(&text, "%s: %s\n", cmp.Or(cfg.File, "no file; the defaults hold"), describe.Count(len(cfg.Warnings), "warning"))
	for _, w := range cfg.Warnings {
		fmt.Fprintf(&text, "warning: %s\n", display.Short(w))
	}
	return g.Print(checkedConfig{Config: cfg.File, Warnings: append([]string{}, cfg.Warnings...)}, text.String())
}

const exitAsks, exitDenies = 3, 4 // of policy explain --exit-code

func policyExplainCommand(g *global) *cobra.Command {
	var tool, client, agent string
	var coded bool
	cmd := &cobra.Command{
		Use: "explain {ID | -- COMMAND | --tool TOOL [OPERAND]}", Short: "Explain how a call is decided, and what must change for it to be allowed",
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
			arguments, err := build(cmd, cmp.Or(tool, "bash"), operand(args), g.In)
			if err != nil {
				return console.Usage(err)
			}
			arguments, _ = g.below.Arguments(arguments)
			j.Client, j.Agent = client, agent
			e, err := j.Explain(cmp.Or(tool, "bash"), arguments)
			if err != nil {
				return err
			}
			return g.explained(judge.Explanation{Explanation: e}, coded)
		},
	}
	addArguments(cmd)
	cmd.Flags().StringVar(&tool, "tool", "", "the `tool` of the call; default: bash")
	cmd.Flags().StringVar(&client, "client", "agent", "the `name` of the token with which the call comes")
	cmd.Flags().StringVar(&agent, "agent", "", "the `id` of the agent that makes the call")
	cmd.Flags().BoolVar(&coded, "exit-code", false, "end with 0 for allow, 3 for ask, 4 for deny")
	return cmd
}

// noteOther warns if the running daemon follows another policy than the one being checked.
func (g *global) noteOther(cfg config.Config) {
	if other := g.daemon(cfg).OtherPolicy(); other != "" {
		fmt.Fprintln(g.Err, "toold: warning:", other)
	}
}

func (g *global) judge() (*judge.Judge, error) {
	cfg, err := g.inspect()
	if err != nil {
		return nil, err
	}
	g.noteOther(cfg)
	return judge.New(cfg)
}

// operand joins words to one script. NAME=VALUE remains an assignment.
func operand(words []string) []string {
	if len(words) < 2 {
		return words
	}
	return []string{describe.Quote(words, false)}
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
