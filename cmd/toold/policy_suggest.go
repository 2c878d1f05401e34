package main

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/policy"
)

// runsAnything tells of programs that run what their arguments say, or reach
// further than one rule can tell. No rule is suggested for them.
func runsAnything(program string) bool {
	name := strings.TrimRight(path.Base(program), "0123456789.")
	return slices.Contains(strings.Fields(`sh bash dash zsh ksh fish ash csh tcsh pwsh
		python pypy node deno bun ruby perl php lua tclsh awk gawk mawk nawk sed ed vi vim nvim emacs Rscript java
		env xargs sudo doas su pkexec runuser ssh scp rsync docker podman kubectl nsenter unshare chroot
		curl wget nc ncat socat find parallel watch timeout nohup nice stdbuf setsid time exec eval source command
		busybox toybox strace ltrace gdb script tmux screen systemd-run at crontab npx pnpx bunx uvx pipx
		rm dd mkfs shred chmod chown kill pkill killall mount umount make`), name)
}

// proposal is a rule that would have answered questions that people approved.
type proposal struct {
	Run   []string `json:"run"`       // one command pattern
	Saves []string `json:"saves"`     // approved calls that it lets pass, with others of the proposals
	Also  []string `json:"also"`      // further calls of the journal with a command that it allows
	IDs   []string `json:"saved_ids"` // tool_call_ids of Saves
	words []string // literal, or "*"
}

func policySuggestCommand(g *global) *cobra.Command {
	var since string
	cmd := &cobra.Command{
		Use: "suggest", Short: "Propose rules for commands that people have approved", Args: cobra.NoArgs,
		Long: "Looks in the journal for calls that a person approved, and proposes the narrowest rules\nwith which nobody would have been asked. Each was tried: it lets the calls pass from\nwhich it comes. Shown beside it is what else of the journal it would have allowed.\nNothing is proposed for shells, interpreters and other programs that run what their\narguments say, nor for what cannot be analysed. Nothing is changed.",
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
	calls, err := g.replayable(ctx, j, since)
	if err != nil {
		return err
	}
	list, err := j.proposals(calls)
	if err != nil {
		return err
	}
	return g.print(list, proposalsText(list))
}

// proposals makes rules of the approved calls that would be asked again.
func (j *judge) proposals(calls []past) ([]*proposal, error) {
	file, err := config.ReadPolicy(j.cfg.Policy)
	if err != nil {
		return nil, &exitError{exitConfig, err}
	}
	list := []*proposal{}
	for _, c := range calls {
		if c.Decision.By != "person" || c.Decision.Action != policy.Allow.String() {
			continue
		}
		for _, words := range j.asking(c.effects) {
			list = merge(list, words)
		}
	}
	all := j.adding(file, list...)
	var proved []*proposal
	for i, p := range list {
		alone := j.adding(file, p)
		if all == nil || alone == nil {
			continue
		}
		for _, c := range calls {
			switch {
			case !newlyAllows(j.policy, alone, c.effects):
			case c.Decision.By == "person" && c.Decision.Action == "allow" && all.Decide(c.effects).Action == policy.Allow:
				p.Saves, p.IDs = append(p.Saves, c.text), append(p.IDs, c.ID)
			default:
				p.Also = append(p.Also, c.text)
			}
		}
		if len(p.Saves) > 0 {
			proved = append(proved, list[i])
		}
	}
	return proved, nil
}

// asking returns the commands of a call that ask by default, or nothing when
// rules for them would not be enough, or too much.
func (j *judge) asking(effects []policy.Effect) [][]string {
	var list [][]string
	for _, e := range effects {
		d := j.policy.Decide([]policy.Effect{e})
		if d.Action == policy.Allow {
			continue
		}
		// What a rule asks on purpose is not to be answered by another.
		if d.Action == policy.Deny || e.Kind != policy.Exec || d.Rule != "defaults.bash" || runsAnything(e.Argv[0].Text) || len(e.Argv) < 2 {
			return nil
		}
		words := make([]string, len(e.Argv))
		for i, w := range e.Argv {
			if w.Dynamic || w.Text == "" || strings.ContainsAny(w.Text, " \t\n'\"\\*?[]{}|&;<>()$`#~") {
				return nil
			}
			words[i] = w.Text
		}
		list = append(list, words)
	}
	return list
}

// merge adds a command to the proposals: to one that differs in operands only,
// which become *, else as its own. The program and its first word stay.
func merge(list []*proposal, words []string) []*proposal {
	for _, p := range list {
		if general, ok := generalise(p.words, words); ok {
			p.words, p.Run = general, []string{strings.Join(general, " ")}
			return list
		}
	}
	return append(list, &proposal{words: words, Run: []string{strings.Join(words, " ")}, Saves: []string{}, Also: []string{}, IDs: []string{}})
}

// generalise returns the narrowest pattern that covers both commands. * stands
// for one operand and never for a flag.
func generalise(a, b []string) ([]string, bool) {
	if len(a) != len(b) {
		return nil, false
	}
	out := slices.Clone(a)
	for i := range a {
		switch {
		case a[i] == b[i]:
		case i < 2 || strings.HasPrefix(a[i], "-") || strings.HasPrefix(b[i], "-"):
			return nil, false
		default:
			out[i] = "*"
		}
	}
	return out, true
}

// adding compiles the policy with the proposals in the user's file, or returns
// nil when that is no policy.
func (j *judge) adding(file policy.File, list ...*proposal) *policy.Policy {
	file.Commands = slices.Clone(file.Commands)
	for i, p := range list {
		file.Commands = append(file.Commands, policy.Rule{ID: fmt.Sprintf("suggested-%d", i+1), Action: policy.Allow, Run: p.Run})
	}
	p, err := config.CompilePolicy(file, policyOptions(j.cfg))
	if err != nil {
		return nil
	}
	return p
}

// newlyAllows tells whether some effect is allowed by next and was not before.
func newlyAllows(before, next *policy.Policy, effects []policy.Effect) bool {
	return slices.ContainsFunc(effects, func(e policy.Effect) bool {
		one := []policy.Effect{e}
		return before.Decide(one).Action != policy.Allow && next.Decide(one).Action == policy.Allow
	})
}

// proposalsText is a piece of a policy file, with what the rules come from.
func proposalsText(list []*proposal) string {
	if len(list) == 0 {
		return "# No approved call can be covered by a narrow rule.\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Proposed %s from what people approved. Put what you want under commands:\ncommands:\n", time.Now().Format(time.DateOnly))
	for i, p := range list {
		fmt.Fprintf(&b, "  - id: suggested-%d\n    decision: allow\n    run: [%q]\n", i+1, p.Run[0])
		for _, text := range p.Saves {
			fmt.Fprintf(&b, "    # saves: %s\n", text)
		}
		for _, text := range p.Also {
			fmt.Fprintf(&b, "    # ALSO ALLOWS a command in: %s\n", text)
		}
	}
	return b.String()
}
