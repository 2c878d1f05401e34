package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/toold/toold/client"
	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/message"
	"github.com/toold/toold/tools"
)

// How often a running call is looked at: soon after it printed, later when it is
// quiet.
const (
	lookSoon = 50 * time.Millisecond
	lookLate = time.Second
)

type outputRun struct {
	*global
	id, stream string
	offset     int64
	follow     bool
	raw        bool
}

func outputCommand(g *global) *cobra.Command {
	o := &outputRun{global: g}
	cmd := &cobra.Command{
		Use: "output ID", Short: "Print what a call has printed", Args: one,
		Long: "Print the recorded output of a call, running or ended. A pipe or file gets it byte for\n" +
			"byte; a terminal gets colours, but no other escape sequences, unless --raw is given. With\n" +
			"--json each piece is a line with its offsets; binary pieces are in base64.",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.id = args[0]
			if err := oneOf("--stream", o.stream, tools.Stdout.String(), tools.Stderr.String(), "combined"); err != nil {
				return &exitError{exitUsage, err}
			}
			if o.offset < 0 {
				return &exitError{exitUsage, fmt.Errorf("--offset %d: expected 0 or more", o.offset)}
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&o.stream, "stream", "combined", "stdout, stderr or combined")
	cmd.Flags().Int64Var(&o.offset, "offset", 0, "`bytes` of the stream to leave out")
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
	out := newPrinter(o.std.out, o.raw)
	err = o.print(ctx, c, out)
	out.close()
	var refused *message.Error
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.As(err, &refused):
		return errors.New(oneLine(refused.Message))
	case err != nil:
		return err
	}
	return nil
}

// print writes the output up to its present end, or to the call's end.
func (o *outputRun) print(ctx context.Context, c *client.Client, out printer) error {
	pause := lookSoon
	for {
		answer, data, err := c.GetOutput(ctx, message.GetOutput{CallID: o.id, Stream: o.stream, Offset: o.offset})
		if err != nil {
			return err
		}
		if err := o.piece(answer, data, out); err != nil {
			return err
		}
		o.offset = answer.NextOffset
		switch {
		case answer.EOF || !o.follow && len(data) == 0:
			return nil
		case len(data) > 0:
			pause = lookSoon
			continue
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, lookLate)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (o *outputRun) piece(answer message.Output, data []byte, out printer) error {
	if o.json {
		if len(data) == 0 && !answer.EOF && answer.Gap == nil {
			return nil
		}
		return o.emit(answer)
	}
	if answer.Gap != nil && answer.Offset >= answer.Gap.To {
		fmt.Fprintf(o.std.err, "toold: %d bytes are not kept here\n", answer.Gap.To-answer.Gap.From)
	}
	if _, err := out.Write(data); err != nil {
		return fmt.Errorf("cannot print the output: %w", err)
	}
	if answer.Gap != nil && answer.Offset < answer.Gap.To {
		fmt.Fprintf(o.std.err, "toold: the last %d bytes are not kept\n", answer.Gap.To-answer.Gap.From)
	}
	return nil
}

type printer struct{ io.Writer }

// newPrinter prints to f. On a terminal it filters escape sequences, unless raw.
func newPrinter(f *os.File, raw bool) printer {
	if raw || !executor.IsTerminal(f) {
		return printer{f}
	}
	return printer{display.NewScreen(f)}
}

// close ends the output: it leaves no colours behind.
func (p printer) close() {
	if s, ok := p.Writer.(*display.Screen); ok {
		_ = s.Close() // a terminal that is gone has no colours
	}
}

func addRaw(cmd *cobra.Command, raw *bool) {
	cmd.Flags().BoolVar(raw, "raw", false, "print escape sequences to a terminal as the command wrote them")
}
