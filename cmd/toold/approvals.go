package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/describe"
	"github.com/toold/toold/message"
)

func approvalsCommand(g *global) *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use: "approvals", Short: "List the calls that wait for a person", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if watch {
				return g.watch(cmd.Context(), message.Subscribe{})
			}
			return g.listApprovals(cmd.Context())
		},
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "the same as toold watch")
	return cmd
}

func approveCommand(g *global) *cobra.Command {
	var w message.Widening
	var f console.AnswerFlags
	cmd := withMessage("approve ID", "Let a waiting call run", "what the agent is told besides", func(ctx context.Context, id, reason string) error {
		if err := console.CheckWidening(w); err != nil {
			return console.Usage(err)
		}
		return g.decide(ctx, client.Decision{ApprovalID: id, Approve: true, Reason: reason, Widen: w}, f)
	})
	cmd.Flags().StringVar(&f.Remember, "remember", "", "what the yes counts for besides: once (nothing), conversation, command, prefix or rule")
	cmd.Flags().StringVar(&f.Pattern, "pattern", "", "with --remember rule: the `commands` that the rule allows, e.g. 'npm run *'")
	cmd.Flags().StringVar(&f.Command, "command", "", "run this `command` instead of the one that was asked for")
	cmd.Flags().StringVar(&f.Arguments, "arguments", "", "run the call with these arguments, as `JSON`, instead of its own")
	addWideningFlags(cmd, &w)
	return cmd
}

func denyCommand(g *global) *cobra.Command {
	return withMessage("deny ID", "Refuse a waiting call", "why; the agent reads it", func(ctx context.Context, id, reason string) error {
		return g.decide(ctx, client.Decision{ApprovalID: id, Reason: reason}, console.AnswerFlags{})
	})
}

func (g *global) listApprovals(ctx context.Context) error {
	c, err := g.dial(ctx, "approver")
	if err != nil {
		return err
	}
	defer c.Close()
	list, err := c.ListApprovals(ctx)
	if err != nil {
		return err
	}
	if len(list) == 0 && !g.JSON {
		fmt.Fprintln(g.Err, "no call waits for a person")
	}
	var text strings.Builder
	for _, r := range list {
		fmt.Fprintf(&text, "%s  %s", r.ID, describe.Asked(r))
	}
	return g.Print(list, text.String())
}

// decide answers one approval request, named by its id or its call's.
func (g *global) decide(ctx context.Context, d client.Decision, f console.AnswerFlags) error {
	id := d.ApprovalID
	c, err := g.dial(ctx, "approver")
	if err != nil {
		return err
	}
	defer c.Close()
	var waiting []message.ApprovalRequest
	if f.Command != "" {
		if waiting, err = c.ListApprovals(ctx); err != nil {
			return err
		}
	}
	if err := f.Add(&d, waiting); err != nil {
		return console.Usage(err)
	}
	_, err = c.Decide(ctx, d)
	var refused *message.Error
	switch {
	case errors.As(err, &refused) && refused.Type == message.ApprovalNotPending:
		return console.Exit(console.ExitNotPending, fmt.Errorf("%s: %s", id, refused.Message))
	case err != nil:
		return err
	}
	answer, word := map[string]any{"id": id, "approve": d.Approve}, "denied "
	if d.Approve {
		word = "approved "
	}
	if w := d.Widen.Recorded(); w != nil {
		answer["widened"] = w
	}
	if lines := d.Widen.Lines(); len(lines) > 0 && !g.JSON {
		fmt.Fprintf(g.Err, "this one call gets a wider sandbox:\n%s", describe.Bullets(lines))
	}
	return g.Done(answer, word+id)
}

func addWideningFlags(cmd *cobra.Command, w *message.Widening) {
	usage := map[string]string{
		"profile": "run it in a wider `profile`: workspace-write or danger-full-access", "write": "let it write in a `folder`, given by its absolute path",
		"network": "give it a wider `network`: proxy or full", "host": "let it contact a `host`: a name or an address, with :port or without",
	}
	for name, field := range console.WideningFields(w) {
		cmd.Flags().StringVar(field, name, "", usage[name])
	}
}

func watchCommand(g *global) *cobra.Command {
	var s message.Subscribe
	cmd := &cobra.Command{
		Use: "watch", Short: "Show what calls do as they do it, and answer their questions", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return g.watch(cmd.Context(), s) },
	}
	cmd.Flags().StringVar(&s.AgentID, "agent", "", "only calls of an agent, by its agent_`id` or the name of its token")
	cmd.Flags().StringVar(&s.ConversationID, "conversation", "", "only calls of the conversation with this `id`")
	return cmd
}

func (g *global) watch(ctx context.Context, wants message.Subscribe) error {
	ctx, stop := console.Interruptible(ctx)
	defer stop()
	return g.Watch(ctx, func(ctx context.Context) (*client.Client, error) { return g.dial(ctx, "approver") }, wants)
}
