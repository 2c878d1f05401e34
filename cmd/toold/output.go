package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/message"
	"github.com/toold/toold/tools"
)

type outputRun struct {
	*global
	message.GetOutput
	follow, raw bool
}

func outputCommand(g *global) *cobra.Command {
	o := &outputRun{global: g}
	cmd := &cobra.Command{
		Use: "output ID", Short: "Print what a call has printed", Args: one,
		Long: "Print the recorded output of a call, running or ended. A pipe or file gets it byte for\n" +
			"byte; a terminal gets colours, but no other escape sequences, unless --raw is given. With\n" +
			"--json each piece is a line with its offsets; binary pieces are in base64.",
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
	ctx, stop := interruptible(ctx)
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
	case err != nil:
		return err
	}
	return nil
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
