package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/toold/toold/client"
	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/message"
	"github.com/toold/toold/tools"
)

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

// print writes the output up to its present end, or follows it.
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

// newPrinter filters escape sequences on a terminal, unless raw.
func newPrinter(f *os.File, raw bool) printer {
	if raw || !executor.IsTerminal(f) {
		return printer{f}
	}
	return printer{display.NewScreen(f)}
}

func (p printer) close() {
	if s, ok := p.Writer.(*display.Screen); ok {
		_ = s.Close()
	}
}

func addRaw(cmd *cobra.Command, raw *bool) {
	cmd.Flags().BoolVar(raw, "raw", false, "print escape sequences to a terminal as the command wrote them")
}

// livePieces of up to 32 KiB wait to be printed. Further ones are read from the record.
const livePieces = 128

type piece struct {
	stream string
	offset int64
	data   []byte
}

// live prints the output of a call without delaying the connection.
type live struct {
	std    stdio
	raw    bool
	record func(context.Context, message.GetOutput) (message.Output, []byte, error)
	failed func() // nothing can be printed

	out, errs printer
	pieces    chan piece
	printing  sync.WaitGroup

	// Owned by the printing goroutine until close returns.
	at      map[string]int64 // printed or missing, by stream
	missing int64            // in the record
	err     error            // of printing
	mid     bool             // standard output is within a line
}

// start prints what take receives, until close.
func (l *live) start(ctx context.Context) {
	l.pieces, l.at = make(chan piece, livePieces), map[string]int64{}
	l.out, l.errs = newPrinter(l.std.out, l.raw), newPrinter(l.std.err, l.raw)
	// Ends when close was called and all is printed.
	l.printing.Go(func() {
		for p := range l.pieces {
			l.fill(ctx, p.stream, p.offset)
			l.print(p.stream, p.data)
		}
	})
}

// take never waits.
func (l *live) take(d message.OutputDelta, data []byte) {
	select {
	case l.pieces <- piece{d.Stream, d.Offset, data}:
	default: // fill gets it
	}
}

func (l *live) close() {
	close(l.pieces)
	l.printing.Wait()
}

// finish resets colours.
func (l *live) finish() {
	l.out.close()
	l.errs.close()
}

// fill prints a stream up to an offset, from the record.
func (l *live) fill(ctx context.Context, stream string, to int64) {
	for l.at[stream] < to && l.err == nil && ctx.Err() == nil {
		from := l.at[stream]
		out, data, err := l.record(ctx, message.GetOutput{Stream: stream, Offset: from, Limit: to - from})
		if err != nil || out.Offset >= to || len(data) == 0 {
			break
		}
		l.missing += out.Offset - from
		l.at[stream] = out.Offset
		l.print(stream, data[:min(int64(len(data)), to-out.Offset)])
	}
	if rest := to - l.at[stream]; rest > 0 {
		l.missing += rest
		l.at[stream] = to
	}
}

func (l *live) print(stream string, data []byte) {
	l.at[stream] += int64(len(data))
	out := l.out
	if stream == "stderr" {
		out = l.errs
	} else if len(data) > 0 {
		l.mid = data[len(data)-1] != '\n'
	}
	if l.err != nil {
		return
	}
	if _, l.err = out.Write(data); l.err != nil {
		l.failed()
	}
}

func (l *live) problem() error {
	switch {
	case l.err != nil:
		return fmt.Errorf("cannot print the output: %w", l.err)
	case l.missing > 0:
		return fmt.Errorf("%d bytes of the output were not printed: the record does not have them (limits.spool_bytes, or a full disk); let the command write to a file", l.missing)
	}
	return nil
}

func (c *callRun) recordOf(p *peer) func(context.Context, message.GetOutput) (message.Output, []byte, error) {
	return func(ctx context.Context, q message.GetOutput) (message.Output, []byte, error) {
		if p.reader == nil {
			var err error
			if p.reader, err = p.dial(ctx, "agent", client.Options{Silent: true}); err != nil {
				return message.Output{}, nil, err
			}
		}
		q.CallID = c.id
		return p.reader.GetOutput(ctx, q)
	}
}
