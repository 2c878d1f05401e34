package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/audit"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/policy/check"
)

// Exit codes of policy explain --exit-code.
const (
	exitAsks   = 3
	exitDenies = 4
)

type explanation struct {
	Call     string            `json:"tool_call_id,omitempty"`
	Recorded *message.Decision `json:"recorded,omitempty"`
	check.Explanation
}

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
				return g.explainRecorded(cmd, j, args, coded)
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
			return g.explained(explanation{Explanation: e}, coded)
		},
	}
	flags.register(cmd)
	cmd.Flags().StringVar(&tool, "tool", "", "the `tool` of the call; default: bash")
	cmd.Flags().StringVar(&client, "client", "agent", "the `name` of the token with which the call comes")
	cmd.Flags().StringVar(&agent, "agent", "", "the `id` of the agent that makes the call")
	cmd.Flags().BoolVar(&coded, "exit-code", false, "end with 0 for allow, 3 for ask, 4 for deny")
	return cmd
}

func (g *global) judge() (*judge, error) {
	cfg, err := g.inspect()
	if err != nil {
		return nil, err
	}
	return newJudge(cfg)
}

// operand joins words to one script, in which NAME=VALUE stays an assignment.
func operand(words []string) []string {
	if len(words) < 2 {
		return words
	}
	return []string{console.Quote(words, false)}
}

func (g *global) explainRecorded(cmd *cobra.Command, j *judge, args []string, coded bool) error {
	if len(args) != 1 {
		return console.Usage(errors.New("name a tool_call_id, or a command after --, e.g. toold policy explain -- git push"))
	}
	log, err := audit.Open(cmd.Context(), j.cfg)
	if err != nil {
		return err
	}
	defer log.Close()
	rec, err := log.FindAny(cmd.Context(), args[0])
	if errors.Is(err, journal.ErrNotFound) {
		return fmt.Errorf("the journal has no call %q; for a command: toold policy explain -- %[1]s", args[0])
	}
	if err != nil {
		return err
	}
	arguments, err := log.Arguments(cmd.Context(), rec.Key)
	if err != nil {
		return err
	}
	j.Client, j.Agent = rec.Client, rec.AgentID
	e := explanation{Call: rec.ID}
	if e.Explanation, err = j.Explain(rec.Tool, arguments); err != nil { // the arguments have the shape of the name that was asked for
		return err
	}
	if e.Recorded, err = audit.Decided(rec); err != nil {
		return err
	}
	return g.explained(e, coded)
}

func (g *global) explained(e explanation, coded bool) error {
	if err := g.Print(e, e.String()); err != nil || !coded || e.Action == policy.Allow {
		return err
	}
	if e.Action == policy.Ask {
		return console.Exit(exitAsks, nil)
	}
	return console.Exit(exitDenies, nil)
}

// String is the explanation for people.
func (e explanation) String() string {
	var b strings.Builder
	if e.Recorded != nil {
		fmt.Fprintf(&b, "then   %s\n", display.Short(console.Decision(*e.Recorded)))
	}
	fmt.Fprintf(&b, "%-5s  %s (%s)\n       %s\n", e.Action, display.Short(e.Rule), display.Short(e.Source), display.Short(e.Reason))
	for _, one := range e.Effects {
		fmt.Fprintf(&b, "  %-5s  %s  [%s, %s]\n", one.Action, display.Short(one.Text), display.Short(one.Rule), display.Short(one.At))
	}
	if e.Barred != "" {
		fmt.Fprintf(&b, "it cannot be allowed: %s\n", display.Short(e.Barred))
		return b.String()
	}
	if len(e.Needs) > 0 {
		b.WriteString("for it to be allowed, the policy needs\n")
	}
	for _, need := range e.Needs {
		fmt.Fprintf(&b, "  - %s\n", display.Short(need))
	}
	if e.Proved {
		b.WriteString("then it is allowed (tried)\n")
	}
	return b.String()
}
