package console

import (
	"context"
	"fmt"
	"time"

	"github.com/toold/toold/client"
	"github.com/toold/toold/message"
)

// How often Output looks at a running call.
const (
	lookSoon = 50 * time.Millisecond
	lookLate = time.Second
)

// Output prints the recorded output of a call up to its present end or, with follow, the end of the call.
func (c Console) Output(ctx context.Context, conn *client.Client, q message.GetOutput, follow, raw bool) error {
	out := NewPrinter(c.Out, raw)
	defer out.Close()
	pause := lookSoon
	for {
		answer, data, err := conn.GetOutput(ctx, q)
		if err == nil {
			err = c.piece(answer, data, out)
		}
		if err != nil {
			return err
		}
		q.Offset = answer.NextOffset
		switch {
		case answer.EOF || !follow && len(data) == 0:
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

func (c Console) piece(answer message.Output, data []byte, out Printer) error {
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
