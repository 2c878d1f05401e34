package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/toold/toold/client"
	"github.com/toold/toold/message"
)

// livePieces is how many pieces of output wait to be printed, each of 32 KiB at the
// most. What comes when there is no room is read from the record later.
const livePieces = 128

type piece struct {
	stream string
	offset int64
	data   []byte
}

// live prints the output of one call, every byte of it, at the pace of whoever reads
// it: neither the command nor the connection waits for a slow reader or a pager.
// What could not be kept for that long comes from the daemon's record.
type live struct {
	std    stdio
	raw    bool // a terminal gets every byte
	record func(context.Context, message.GetOutput) (message.Output, []byte, error)
	failed func() // called once, when nothing can be printed

	out, errs printer // of the two streams
	pieces    chan piece
	printing  sync.WaitGroup

	// These are the printing goroutine's until close has returned.
	at      map[string]int64 // what of each stream was printed or is missing
	missing int64            // bytes that the record did not have
	err     error            // of printing; nothing is printed after it
	mid     bool             // the last byte on standard output ended no line
}

// start prints what take receives, until close. When ctx ends, it fetches no more.
func (l *live) start(ctx context.Context) {
	l.pieces, l.at = make(chan piece, livePieces), map[string]int64{}
	l.out, l.errs = newPrinter(l.std.out, l.raw), newPrinter(l.std.err, l.raw)
	// Ends when close has been called and all is printed.
	l.printing.Go(func() {
		for p := range l.pieces {
			l.fill(ctx, p.stream, p.offset)
			l.print(p.stream, p.data)
		}
	})
}

// take is what client.Events calls for each piece. It never waits.
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

// finish leaves no colours behind. More may be printed after it.
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
