package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/describe"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/message"
	"github.com/toold/toold/tools"
)

func callsCommand(g *global) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "calls", SuggestFor: []string{"status", "ps"}, Short: "List the calls of the running daemon", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return g.listCalls(cmd.Context(), all) },
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also the latest that have ended")
	return cmd
}

func cancelCommand(g *global) *cobra.Command {
	return withMessage("cancel ID", "Stop a call of the running daemon", "why; the agent reads it", g.cancel)
}

func withMessage(use, short, usage string, run func(ctx context.Context, id, message string) error) *cobra.Command {
	var message string
	cmd := &cobra.Command{
		Use: use, Short: short, Args: one,
		RunE: func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), args[0], message) },
	}
	cmd.Flags().StringVarP(&message, "message", "m", "", usage)
	return cmd
}

func (g *global) listCalls(ctx context.Context, all bool) error {
	c, err := g.dial(ctx, "observer")
	if err != nil {
		return err
	}
	defer c.Close()
	list, err := c.ListCalls(ctx, "", all)
	if err != nil {
		return err
	}
	rows := make([][]string, len(list))
	for n, i := range list {
		rows[n] = []string{display.Short(i.CallID), describe.CallState(i), display.Short(i.ToolName), describe.Since(i.ReceivedAt), display.Short(i.Preview)}
	}
	return g.List(list, rows, "no call runs or waits; those that have ended: toold calls --all")
}

func (g *global) cancel(ctx context.Context, id, reason string) error {
	c, err := g.dial(ctx, "approver")
	if err != nil {
		return err
	}
	defer c.Close()
	err = c.Stop(ctx, id, reason)
	var refused *message.Error
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("%s: %s", id, refused.Message)
	case err != nil:
		return err
	}
	if err := gone(ctx, c, id); err != nil {
		return err
	}
	return g.Done(map[string]any{"tool_call_id": id, "cancelled": true}, "cancelled "+id)
}

func gone(ctx context.Context, c *client.Client, id string) error {
	tick := time.Tick(50 * time.Millisecond)
	for {
		list, err := c.ListCalls(ctx, "", false)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(list, func(i message.CallInfo) bool { return i.CallID == id }) {
			return nil
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

type outputRun struct {
	*global
	message.GetOutput
	follow, raw bool
}

func outputCommand(g *global) *cobra.Command {
	o := &outputRun{global: g}
	cmd := &cobra.Command{
		Use: "output ID", Short: "Print what a call has printed", Args: one,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.CallID = args[0]
			if err := console.OneOf("--stream", o.Stream, tools.Stdout.String(), tools.Stderr.String(), "combined"); err != nil {
				return console.Usage(err)
			}
			if o.Offset < 0 {
				return console.Usage(fmt.Errorf("--offset %d: expected 0 or more", o.Offset))
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&o.Stream, "stream", "combined", "stdout, stderr or combined")
	cmd.Flags().Int64Var(&o.Offset, "offset", 0, "`bytes` of the stream to leave out")
	addRaw(cmd, &o.raw)
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "go on until the call has ended")
	return cmd
}

func (o *outputRun) run(ctx context.Context) error {
	ctx, stop := console.Interruptible(ctx)
	defer stop()
	c, err := o.dial(ctx, "observer")
	if err != nil {
		return err
	}
	defer c.Close()
	err = o.Output(ctx, c, o.GetOutput, o.follow, o.raw)
	var refused *message.Error
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.As(err, &refused):
		return errors.New(display.Short(refused.Message))
	}
	return err
}

func addRaw(cmd *cobra.Command, raw *bool) {
	cmd.Flags().BoolVar(raw, "raw", false, "print escape sequences to a terminal as the command wrote them")
}

func (c *callRun) recordOf(p *peer) func(context.Context, message.GetOutput) (message.Output, []byte, error) {
	return func(ctx context.Context, q message.GetOutput) (message.Output, []byte, error) {
		if p.reader == nil {
			var err error
			if p.reader, err = p.dial(ctx, "agent"); err != nil {
				return message.Output{}, nil, err
			}
		}
		q.CallID = c.id
		return p.reader.GetOutput(ctx, q)
	}
}
