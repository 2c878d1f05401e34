package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/internal/describe"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/judge"
)

func policyCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{Use: "policy", Short: "Write, check, try and improve the policy; nothing is run"}
	cmd.AddCommand(policyInitCommand(g), policyCheckCommand(g), policyExplainCommand(g), policyTestCommand(g),
		policySuggestCommand(g), policyUndoCommand(g), policyDiffCommand(g), schemaCommand(g, "Print the JSON Schema of policy files, for editors", config.PolicySchema))
	return cmd
}

func policyInitCommand(g *global) *cobra.Command {
	var strict bool
	name := "careful"
	cmd := &cobra.Command{
		Use: "init [FILE]", Short: "Write a commented policy to start from", Args: optional,
		RunE: func(_ *cobra.Command, args []string) error {
			if strict {
				name = "strict"
			}
			return g.initPolicy(name, args)
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "ask for every program that is not known")
	cmd.Flags().StringVar(&name, "for", name, "the policy of a `language`: go, node or python")
	cmd.MarkFlagsMutuallyExclusive("strict", "for")
	return cmd
}

func (g *global) initPolicy(name string, args []string) error {
	path, err := judge.WriteStarter(name, append(args, g.options.Policy))
	if err != nil {
		return err
	}
	if err := g.Print(map[string]string{"policy": path}, path+"\n"); err != nil || g.JSON {
		return err
	}
	if len(args) == 0 && g.options.Policy == "" {
		fmt.Fprintf(g.Err, "it is your policy from now on; a running daemon takes it up with: toold reload; after a change: toold policy check\n")
		return nil
	}
	fmt.Fprintf(g.Err, "change it, then: toold policy check %s; %s\n", display.Operand(path), judge.Starts(path))
	return nil
}

func policyUndoCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "undo", Short: "Take the rule of the last remembered answer out of the policy", Args: cobra.NoArgs,
		RunE: g.remotely(func(_ context.Context, cfg config.Config, _ []string) error {
			e, err := daemon.Undo(cfg.StateDir)
			if err != nil {
				return err
			}
			var lines []string
			for _, c := range e.Changes {
				lines = append(lines, c.Text(e.File))
			}
			return g.Print(e, fmt.Sprintf("%s: taken out, as %s remembered it on %s\n%s", e.File, display.Short(e.Person), e.At.Local().Format(time.DateTime), describe.Bullets(lines)))
		}),
	}
}

func policyTestCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "test [FILE...]", Short: "Try the examples of policy files, and files of cases", Args: notEmpty,
		RunE: func(_ *cobra.Command, args []string) error { return g.testPolicy(args) },
	}
}

func (g *global) testPolicy(files []string) error {
	cfg, err := g.inspect()
	if err != nil {
		return err
	}
	if len(files) == 0 {
		g.noteOther(cfg)
	}
	report, err := judge.Try(cfg, files)
	if err != nil {
		return err
	}
	if err := g.Print(report, report.String()); err != nil || len(report.Failures) == 0 {
		return err
	}
	return console.Exit(console.ExitFailed, nil)
}
