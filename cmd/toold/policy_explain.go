package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
)

// explanation is a decision with what led to it.
type explanation struct {
	Call     string            `json:"tool_call_id,omitempty"`
	Recorded *message.Decision `json:"recorded,omitempty"`
	policy.Decision
	Effects []explained `json:"effects"`
}

// explained is one effect and what it would get alone.
type explained struct {
	Kind   string        `json:"kind"`
	Text   string        `json:"text"`
	Source string        `json:"part,omitempty"` // of the call
	Action policy.Action `json:"action"`
	Rule   string        `json:"rule"`
	At     string        `json:"source"`
}

func policyExplainCommand(g *global) *cobra.Command {
	var flags callFlags
	var tool, client, agent string
	cmd := &cobra.Command{
		Use: "explain {ID | -- COMMAND | --tool TOOL [OPERAND]}", Short: "Tell how a call is decided, and why",
		Long: "Tells how the policy decides a call: an old one of the journal by its tool_call_id,\nor a new one. Nothing is run, and no daemon is needed.",
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := g.judge()
			if err != nil {
				return err
			}
			if cmd.ArgsLenAtDash() < 0 && tool == "" && !cmd.Flags().Changed("arguments") {
				return g.explainRecorded(cmd, j, args)
			}
			arguments, err := flags.build(cmd, orDefault(tool, "bash"), operand(args), g.std.in, g.from)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			j.policy = j.policy.For(client, agent)
			e, err := j.explain(orDefault(tool, "bash"), arguments)
			if err != nil {
				return &exitError{exitFailed, err}
			}
			return g.print(e, e.String())
		},
	}
	flags.register(cmd)
	cmd.Flags().StringVar(&tool, "tool", "", "the `tool` of the call; default: bash")
	cmd.Flags().StringVar(&client, "client", "agent", "the `name` of the token with which the call comes")
	cmd.Flags().StringVar(&agent, "agent", "", "the `id` of the agent that makes the call")
	return cmd
}

// judge reads the configuration and makes its judge.
func (g *global) judge() (*judge, error) {
	cfg, err := g.inspect()
	if err != nil {
		return nil, err
	}
	return newJudge(cfg)
}

// operand is the words of a command line as one operand: a single word is a
// script already, several are the words of one command.
func operand(words []string) []string {
	if len(words) < 2 {
		return words
	}
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = w
		if w == "" || strings.ContainsAny(w, " \t\n'\"\\$`*?[]{}()<>|&;#~!") {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return []string{strings.Join(quoted, " ")}
}

func (g *global) explainRecorded(cmd *cobra.Command, j *judge, args []string) error {
	if len(args) != 1 {
		return &exitError{exitUsage, errors.New("name a tool_call_id, or a command after --, e.g. toold policy explain -- git push")}
	}
	log, err := openRecord(cmd.Context(), j.cfg)
	if err != nil {
		return err
	}
	defer log.Close()
	rec, err := log.FindAny(cmd.Context(), args[0])
	if errors.Is(err, journal.ErrNotFound) {
		return &exitError{exitFailed, fmt.Errorf("the journal has no call %q; for a command: toold policy explain -- %[1]s", args[0])}
	}
	if err != nil {
		return &exitError{exitFailed, err}
	}
	arguments, err := log.Arguments(cmd.Context(), rec.Key)
	if err != nil {
		return &exitError{exitFailed, err}
	}
	j.policy = j.policy.For(rec.Client, rec.AgentID)
	e, err := j.explain(rec.Tool, arguments) // the arguments have the shape of the name that was asked for
	if err != nil {
		return &exitError{exitFailed, err}
	}
	e.Call = rec.ID
	if e.Recorded, err = decided(rec); err != nil {
		return &exitError{exitFailed, err}
	}
	return g.print(e, e.String())
}

// explain judges a call, and each of its effects alone.
func (j *judge) explain(tool string, arguments json.RawMessage) (explanation, error) {
	effects, err := j.effects(tool, arguments)
	if err != nil {
		return explanation{}, fmt.Errorf("the call is refused before the policy sees it: %w", err)
	}
	e := explanation{Decision: j.policy.Decide(effects)}
	for _, one := range effects {
		d := j.policy.Decide([]policy.Effect{one})
		e.Effects = append(e.Effects, explained{one.Kind.String(), one.String(), one.Source, d.Action, d.Rule, d.Source})
	}
	return e, nil
}

// String is the explanation for people.
func (e explanation) String() string {
	var b strings.Builder
	if e.Recorded != nil {
		fmt.Fprintf(&b, "then   %s\n", oneLine(decisionText(*e.Recorded)))
	}
	fmt.Fprintf(&b, "%-5s  %s (%s)\n       %s\n", e.Action, oneLine(e.Rule), oneLine(e.Source), oneLine(e.Reason))
	for _, one := range e.Effects {
		fmt.Fprintf(&b, "  %-5s  %s  [%s, %s]\n", one.Action, oneLine(one.Text), oneLine(one.Rule), oneLine(one.At))
	}
	if e.Change != "" {
		fmt.Fprintf(&b, "change: %s%s\n", oneLine(e.Change), e.others())
	}
	return b.String()
}

// others tells how many parts of the call the change leaves as they are: it is about
// the one that decided.
func (e explanation) others() string {
	n := -1
	for _, one := range e.Effects {
		if one.Action != policy.Allow {
			n++
		}
	}
	switch {
	case n < 1:
		return ""
	case n == 1:
		return "; 1 other part of the call is not allowed either"
	}
	return fmt.Sprintf("; %d other parts of the call are not allowed either", n)
}
