package console

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/toold/toold/client"
	"github.com/toold/toold/message"
)

// maxPending limits the pieces of up to 32 KiB that wait to be printed. More are read from the record.
const maxPending = 128

type piece struct {
	stream string
	offset int64
	data   []byte
}

// Live prints all output of a call without delaying the command or the connection for a slow reader. It reads from
// Record what it cannot buffer.
type Live struct {
	Console
	Raw    bool // a terminal gets every byte
	Record func(context.Context, message.GetOutput) (message.Output, []byte, error)
	Failed func() // called once if nothing can be printed

	out, errs Printer
	pieces    chan piece
	printing  sync.WaitGroup

	// Owned by the printing goroutine until Close returns.
	printed map[string]int64 // printed or missing bytes by stream
	missing int64            // bytes that the record did not contain
	err     error            // after an error, nothing is printed
	MidLine bool             // standard output is within a line
}

// Start prints what Receive gets until Close. When ctx ends, it reads no more from Record.
func (l *Live) Start(ctx context.Context) {
	l.pieces, l.printed = make(chan piece, maxPending), map[string]int64{}
	l.out, l.errs = NewPrinter(l.Out, l.Raw), NewPrinter(l.Err, l.Raw)
	// Ends when Close was called and all is printed.
	l.printing.Go(func() {
		for p := range l.pieces {
			l.Fill(ctx, p.stream, p.offset)
			l.Print(p.stream, p.data)
		}
	})
}

// Receive gets a piece of output, for client.Events. It never blocks.
func (l *Live) Receive(d message.OutputDelta, data []byte) {
	select {
	case l.pieces <- piece{d.Stream, d.Offset, data}:
	default: // Fill reads it
	}
}

// Close waits until all is printed.
func (l *Live) Close() {
	close(l.pieces)
	l.printing.Wait()
}

// Finish resets colours. More may be printed afterwards.
func (l *Live) Finish() {
	l.out.Close()
	l.errs.Close()
}

// Fill prints a stream up to an offset from the record.
func (l *Live) Fill(ctx context.Context, stream string, to int64) {
	for l.printed[stream] < to && l.err == nil && ctx.Err() == nil {
		from := l.printed[stream]
		out, data, err := l.Record(ctx, message.GetOutput{Stream: stream, Offset: from, Limit: to - from})
		if err != nil || out.Offset >= to || len(data) == 0 {
			break
		}
		l.missing += out.Offset - from
		l.printed[stream] = out.Offset
		l.Print(stream, data[:min(int64(len(data)), to-out.Offset)])
	}
	if rest := to - l.printed[stream]; rest > 0 {
		l.missing += rest
		l.printed[stream] = to
	}
}

// Print prints a piece of a stream.
func (l *Live) Print(stream string, data []byte) {
	l.printed[stream] += int64(len(data))
	out := l.out
	if stream == "stderr" {
		out = l.errs
	} else if len(data) > 0 {
		l.MidLine = data[len(data)-1] != '\n'
	}
	if l.err != nil {
		return
	}
	if _, l.err = out.Write(data); l.err != nil {
		l.Failed()
	}
}

// Problem returns why output is missing.
func (l *Live) Problem() error {
	switch {
	case l.err != nil:
		return fmt.Errorf("cannot print the output: %w", l.err)
	case l.missing > 0:
		return fmt.Errorf("%d bytes of the output were not printed: the record does not have them (limits.spool_bytes, or a full disk); let the command write to a file", l.missing)
	}
	return nil
}

// Intervals at which Output polls a running call.
const (
	minPoll = 50 * time.Millisecond
	maxPoll = time.Second
)

// Output prints the recorded output of a call up to its current end or, with follow, up to the end of the call.
func (c Console) Output(ctx context.Context, conn *client.Client, q message.GetOutput, follow, raw bool) error {
	out := NewPrinter(c.Out, raw)
	defer out.Close()
	pause := minPoll
	for {
		answer, data, err := conn.GetOutput(ctx, q)
		if err == nil {
			err = c.printPiece(answer, data, out)
		}
		if err != nil {
			return err
		}
		q.Offset = answer.NextOffset
		switch {
		case answer.EOF || !follow && len(data) == 0:
			return nil
		case len(data) > 0:
			pause = minPoll
			continue
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, maxPoll)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c Console) printPiece(answer message.Output, data []byte, out Printer) error {
	if c.JSON {
		if len(data) == 0 && !answer.EOF && answer.Gap == nil {
			return nil
		}
		return c.Emit(answer)
	}
	if answer.Gap != nil && answer.Offset >= answer.Gap.To {
		fmt.Fprintf(c.Err, "toold: %d bytes are not kept here\n", answer.Gap.To-answer.Gap.From)
	}
	if _, err := out.Write(data); err != nil {
		return fmt.Errorf("cannot print the output: %w", err)
	}
	if answer.Gap != nil && answer.Offset < answer.Gap.To {
		fmt.Fprintf(c.Err, "toold: the last %d bytes are not kept\n", answer.Gap.To-answer.Gap.From)
	}
	return nil
}
