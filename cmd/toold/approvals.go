package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toold/toold/client"
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
	var f answerFlags
	cmd := withMessage("approve ID", "Let a waiting call run", "what the agent is told besides", func(ctx context.Context, id, reason string) error {
		if err := checkWidening(w); err != nil {
			return &exitError{exitUsage, err}
		}
		return g.decide(ctx, client.Decision{ApprovalID: id, Approve: true, Reason: reason, Widen: w}, f)
	})
	cmd.Flags().StringVar(&f.remember, "remember", "", "what the yes counts for besides: once (nothing), conversation, command, prefix or rule")
	cmd.Flags().StringVar(&f.pattern, "pattern", "", "with --remember rule: the `commands` that the rule allows, e.g. 'npm run *'")
	cmd.Flags().StringVar(&f.command, "command", "", "run this `command` instead of the one that was asked for")
	cmd.Flags().StringVar(&f.arguments, "arguments", "", "run the call with these arguments, as `JSON`, instead of its own")
	cmd.Long = "Lets a waiting call run, once, unless --remember says more: for the rest of its conversation,\nuntil the daemon ends; or by a rule in your policy file, about just this command, about all\nthat begin like it, or about a pattern of yours. toold approvals shows what each would mean;\ntoold policy undo takes the last rule away.\n\nWhat the other flags name is added to the sandbox of this one call, as far as approval.widen\nin the configuration lets it be; toold approvals tells what that is."
	addWideningFlags(cmd, &w)
	return cmd
}

func denyCommand(g *global) *cobra.Command {
	return withMessage("deny ID", "Refuse a waiting call", "why; the agent reads it", func(ctx context.Context, id, reason string) error {
		return g.decide(ctx, client.Decision{ApprovalID: id, Reason: reason}, answerFlags{})
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
	if g.json {
		return g.emit(list)
	}
	if len(list) == 0 {
		fmt.Fprintln(g.std.err, "no call waits for a person")
	}
	var text strings.Builder
	for _, r := range list {
		fmt.Fprintf(&text, "%s  %s", r.ID, asked(r))
	}
	return g.out(text.String())
}

// asked describes a question, without its id.
func asked(r message.ApprovalRequest) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n", oneLine(r.ToolCall.ToolName), untilText(r.ExpiresAt))
	b.WriteString(asker(r.Asker, "    "))
	fmt.Fprintf(&b, "%s    %s asks: %s\n", question(r, "    "), oneLine(r.Rule), oneLine(r.Reason))
	if flags := wideningFlags(r.MayWiden); len(flags) > 0 {
		fmt.Fprintf(&b, "    approve may widen its sandbox: %s\n", strings.Join(flags, ", "))
	}
	b.WriteString(suggestionsText(r.Suggestions, "    "))
	return b.String()
}

func resolvedText(r message.ApprovalResolved) string {
	word := "denied"
	if r.Approve {
		word = "approved"
	}
	if r.By != "" {
		word += " by " + r.By
	}
	if r.Widened != nil {
		word += ", widened for this call: " + r.Widened.String()
	}
	if r.Reason != "" {
		word += ": " + r.Reason
	}
	return word
}

func untilText(expires string) string {
	at, err := time.Parse(time.RFC3339Nano, expires)
	if err != nil {
		return "expires " + expires
	}
	return fmt.Sprintf("expires in %d s", int(time.Until(at).Seconds()))
}

// decide answers one call, named by its id or the approval's.
func (g *global) decide(ctx context.Context, d client.Decision, f answerFlags) error {
	id := d.ApprovalID
	c, err := g.dial(ctx, "approver")
	if err != nil {
		return err
	}
	defer c.Close()
	var waiting []message.ApprovalRequest
	if f.command != "" {
		if waiting, err = c.ListApprovals(ctx); err != nil {
			return err
		}
	}
	if err := f.add(&d, waiting); err != nil {
		return &exitError{exitUsage, err}
	}
	_, err = c.Decide(ctx, d)
	var refused *message.Error
	switch {
	case errors.As(err, &refused) && refused.Type == message.ApprovalNotPending:
		return &exitError{exitNotPending, fmt.Errorf("%s: %s", id, refused.Message)}
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
	if lines := d.Widen.Lines(); len(lines) > 0 && !g.json {
		fmt.Fprintf(g.std.err, "this one call gets a wider sandbox:\n%s", bullets(lines))
	}
	return g.done(answer, word+id)
}
